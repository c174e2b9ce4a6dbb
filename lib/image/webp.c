/* webp.c - WebP images, by libwebp
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * libwebp filters across the edges of blocks, so images are decoded whole.
 * Alpha is dropped, as Pillow's convert('RGB') does.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

#include "base/error.h"
#include "image/webp.h"

struct state {
    uint8_t *x; /* (h, w, 4); owned */
    int y;      /* the next row */
};

static void *new_state(void)
{
    struct state *s = calloc(1, sizeof(*s));

    if (!s)
        ddp__fail(DDP_ENOMEM, "out of memory for a WebP decoder");
    return s;
}

static void close_image(void *state)
{
    struct state *s = state;

    free(s->x);
    *s = (struct state){0};
}

static void free_state(void *state)
{
    if (state)
        close_image(state);
    free(state);
}

static int open_image(void *state, struct ddp__picture *p)
{
    WebPBitstreamFeatures f;
    int rc;

    (void)state;
    if (WebPGetFeatures(p->data, p->len, &f) != VP8_STATUS_OK)
        return ddp__fail(DDP_EDATA, "is not a valid WebP image");
    if (f.has_animation)
        return ddp__fail(DDP_EDATA, "is an animation, expected one picture");
    p->w = f.width;
    p->h = f.height;
    p->orientation = 1;
    /* An area of one colour may take no bytes at all. */
    if ((rc = ddp__picture_check(p, p->w, p->h, INT64_MAX)) < 0)
        return rc;
    return ddp__picture_check_expansion(p, (size_t)p->w * (size_t)p->h * 4);
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct state *s = state;
    size_t size;

    p->stride = (size_t)p->w * 4;
    p->skip = b->x;
    s->y = b->y;
    size = p->stride * (size_t)p->h;
    if (!(s->x = malloc(size)))
        return ddp__fail(DDP_ENOMEM, "out of memory to decode a WebP image");
    if (WebPDecodeRGBAInto(p->data, p->len, s->x, size, (int)p->stride))
        return 0;
    return ddp__fail(DDP_EDATA, "is not a valid WebP image: it is damaged or "
                                "truncated");
}

static int read_rows(void *state, struct ddp__picture *p, uint8_t *x, int n)
{
    struct state *s = state;

    memcpy(x, s->x + (size_t)s->y * p->stride, (size_t)n * p->stride);
    s->y += n;
    return 0;
}

static bool is_webp(const uint8_t *data, size_t len)
{
    return len >= 12 && !memcmp(data, "RIFF", 4) &&
           !memcmp(data + 8, "WEBP", 4);
}

const struct ddp__format ddp__webp = {
    .name = "WebP",
    .match = is_webp,
    .new = new_state,
    .open = open_image,
    .box = start_box,
    .rows = read_rows,
    .close = close_image,
    .free = free_state,
};
