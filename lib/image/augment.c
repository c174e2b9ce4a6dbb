/* augment.c - crop, size and flip of an image
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   pytorch/vision torchvision/transforms: Resize, CenterCrop,
 *          RandomResizedCrop.get_params, RandomCrop with padding,
 *          RandomHorizontalFlip; with random numbers of our own.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "image/augment.h"
#include "image/warp.h"

enum { TRIES = 10 };

struct ddp__crop ddp__crop_whole(int w, int h, int side)
{
    struct ddp__crop c = {.box = {0, 0, w, h}, .w = side, .h = side};

    if (w <= h)
        c.h = (int64_t)((double)((int64_t)side * h) / w);
    else
        c.w = (int64_t)((double)((int64_t)side * w) / h);
    return c;
}

/* The square in the centre of the image, whose short side is resized to `side`.
 * Halves round to even, as in Python's round(). */
static struct ddp__crop centre_crop(int w, int h, int side, int size)
{
    struct ddp__crop c = ddp__crop_whole(w, h, side);

    c.x = (int64_t)rint((double)(c.w - size) / 2);
    c.y = (int64_t)rint((double)(c.h - size) / 2);
    return c;
}

/* A number in 0..n-1 from 32 random bits. */
static int pick_number(uint32_t bits, int n)
{
    return (int)((uint64_t)bits * (uint64_t)n >> 32);
}

/* The centre of the image, cut to the ratios that are allowed; at least a
 * pixel, which torchvision leaves none of where they are extreme. */
static struct ddp__box central_box(const double allowed[2], int w, int h)
{
    double ratio = (double)w / h;
    struct ddp__box b = {0, 0, w, h};

    if (ratio < allowed[0])
        b.h = (int)fmax(rint(w / allowed[0]), 1);
    else if (ratio > allowed[1])
        b.w = (int)fmax(rint(h * allowed[1]), 1);
    b.x = (w - b.w) / 2;
    b.y = (h - b.h) / 2;
    return b;
}

/* A box of random area and ratio that fits, or after some tries the centre. */
static struct ddp__box random_box(const struct ddp_image_options *o,
                                  uint64_t key, int w, int h)
{
    const double low = log(o->ratio[0]), high = log(o->ratio[1]);
    double least = (double)o->min_area, most = (double)o->max_area;

    for (int i = 0; i < TRIES; i++) {
        struct ddp__philox r = ddp__philox(key, 1, (uint64_t)i);
        double u = (double)ddp__uniform(r.v[0]);
        double v = (double)ddp__uniform(r.v[1]);
        double area = (double)w * h * (least + (most - least) * u);
        /* Round to float, because libraries differ in the last bits of
         * exp(). */
        double ratio = (double)(float)exp(low + (high - low) * v);
        double bw = rint(sqrt(area * ratio)), bh = rint(sqrt(area / ratio));

        if (bw > 0 && bw <= w && bh > 0 && bh <= h)
            return (struct ddp__box){pick_number(r.v[2], w - (int)bw + 1),
                                     pick_number(r.v[3], h - (int)bh + 1),
                                     (int)bw, (int)bh};
    }
    return central_box(o->ratio, w, h);
}

static void set_fill(const struct ddp_image_options *o, struct ddp__crop *c)
{
    for (int i = 0; i < 3; i++)
        c->fill[i] =
            (uint8_t)lrintf(255 * fminf(fmaxf(o->mean[i], 0.0f), 1.0f));
}

struct ddp__crop ddp__augment(const struct ddp_image_options *o, uint64_t key,
                              int w, int h)
{
    struct ddp__philox r = ddp__philox(key, 0, 0);
    struct ddp__crop c;

    switch (o->augment) {
    case DDP_AUGMENT_RANDOM:
        c = (struct ddp__crop){
            .box = random_box(o, key, w, h), .w = o->size, .h = o->size};
        break;
    case DDP_AUGMENT_SHIFT:
        c = centre_crop(w, h, o->size, o->size);
        c.dx = pick_number(r.v[1], 2 * o->shift + 1) - o->shift;
        c.dy = pick_number(r.v[2], 2 * o->shift + 1) - o->shift;
        break;
    default:
        c = centre_crop(w, h, o->resize, o->size);
    }
    c.filter = o->interpolation;
    if (c.filter == DDP_EITHER_FILTER)
        c.filter =
            ddp__philox(key, 4, 0).v[1] >> 31 ? DDP_BICUBIC : DDP_BILINEAR;
    if (o->augment == DDP_AUGMENT_NONE)
        return c;
    c.flip = ddp__uniform(r.v[0]) >= 1 - o->horizontal_flip;
    c.vertical_flip =
        ddp__uniform(ddp__philox(key, 4, 0).v[0]) < o->vertical_flip;
    c.policy = o->policy;
    c.key = key;
    c.colour = ddp__colour_plan(o, key);
    set_fill(o, &c);
    if (ddp__uniform(r.v[3]) < o->erase)
        c.erased = ddp__erase_plan(o, key, o->size);
    return c;
}

int ddp__augment_finish(const struct ddp__crop *c, int size,
                        struct ddp__bytes *room, uint8_t *x)
{
    static const uint8_t black[3];
    struct ddp__canvas canvas = {.size = size, .filter = c->filter};
    int rc;

    if (ddp__policy_is_timm(c->policy.kind))
        memcpy(canvas.fill, c->fill, sizeof(canvas.fill));
    if (c->dx || c->dy)
        ddp__shift(c->dx, c->dy, black, size, x);
    if ((rc = ddp__policy_apply(&c->policy, c->key, &canvas, room, x)) < 0 ||
        (rc = ddp__colour_apply(&c->colour, size, room, x)) < 0)
        return rc;
    ddp__erase(&c->erased, size, x);
    return 0;
}
