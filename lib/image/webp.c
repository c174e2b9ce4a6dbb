/* webp.c - WebP images, by libwebp
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * libwebp filters across the edges of blocks, so images are decoded whole.
 * Alpha is dropped, as Pillow's convert('RGB') does.
 */
#include "config.h"

#include <string.h>

#include <webp/decode.h>

#include "base/error.h"
#include "image/webp.h"
#include "image/whole.h"

static int open_image(void *state, struct ddp__picture *p)
{
    WebPBitstreamFeatures f;

    (void)state;
    if (WebPGetFeatures(p->data, p->len, &f) != VP8_STATUS_OK)
        return ddp__fail(DDP_EDATA, "is not a valid WebP image");
    if (f.has_animation)
        return ddp__fail(DDP_EDATA, "is an animation, expected one picture");
    p->orientation = 1;
    return ddp__whole_check(p, f.width, f.height);
}

static int start_box(void *state, struct ddp__picture *p,
                     const struct ddp__box *b)
{
    struct ddp__whole *s = state;
    int rc = ddp__whole_reserve(s, p, b);

    if (rc < 0 || WebPDecodeRGBAInto(p->data, p->len, s->x,
                                     p->stride * (size_t)p->h, (int)p->stride))
        return rc;
    return ddp__fail(DDP_EDATA, "is not a valid WebP image: it is damaged or "
                                "truncated");
}

static bool is_webp(const uint8_t *data, size_t len)
{
    return len >= 12 && !memcmp(data, "RIFF", 4) &&
           !memcmp(data + 8, "WEBP", 4);
}

const struct ddp__format ddp__webp = {
    .name = "WebP",
    .match = is_webp,
    .new = ddp__whole_new,
    .open = open_image,
    .box = start_box,
    .rows = ddp__whole_rows,
    .close = ddp__whole_close,
    .free = ddp__whole_free,
};
