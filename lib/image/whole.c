/* whole.c - what formats share whose decoders give all pixels at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/whole.h"

void *ddp__whole_new(void)
{
    struct ddp__whole *s = calloc(1, sizeof(*s));

    if (!s)
        ddp__fail(DDP_ENOMEM, "out of memory for a decoder of images");
    return s;
}

void ddp__whole_close(void *state)
{
    struct ddp__whole *s = state;

    free(s->x);
    *s = (struct ddp__whole){0};
}

void ddp__whole_free(void *state)
{
    if (state)
        ddp__whole_close(state);
    free(state);
}

/* An area of one colour may take no bytes at all. */
int ddp__whole_check(struct ddp__picture *p, int64_t w, int64_t h)
{
    int rc = ddp__picture_check(p, w, h, INT64_MAX);

    if (rc < 0)
        return rc;
    p->w = (int)w;
    p->h = (int)h;
    return ddp__picture_check_expansion(p, (size_t)w * (size_t)h * 4);
}

int ddp__whole_reserve(struct ddp__whole *s, struct ddp__picture *p,
                       const struct ddp__box *b)
{
    p->stride = (size_t)p->w * 4;
    p->skip = b->x;
    s->y = b->y;
    if ((s->x = calloc((size_t)p->h, p->stride)))
        return 0;
    return ddp__fail(DDP_ENOMEM, "out of memory to decode an image");
}

int ddp__whole_rows(void *state, struct ddp__picture *p, uint8_t *x, int n)
{
    struct ddp__whole *s = state;

    memcpy(x, s->x + (size_t)s->y * p->stride, (size_t)n * p->stride);
    s->y += n;
    return 0;
}
