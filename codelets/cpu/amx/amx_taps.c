/* amx_taps.c - bf16 weight gradients of images of few pixels on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step of amx.c has positions of one image: of few pixels, most of it is
 * empty or padding.  Here a pixel of dy and a pixel of x that a tap joins make
 * a product over all images (see taps.h), of which a step has 32.  A tap's sum
 * over its pairs of pixels is made in tiles.
 *
 * One of two busy cores of an Intel Xeon with AMX under load, milliseconds by
 * oneDNN 3, by amx.c and in this way, of 16, 64 and 256 images from memory:
 *
 *     3x3, 512, 1x1 pixels    4.7 3.4 1.9    12 8.1 2.0     40 32 2.4
 *     3x3, 512, 2x2           8.6 3.5 1.9    28 8.2 1.9    115 35 5.3
 *     3x3, 256, 3x3           2.1 0.7 0.4   6.4 2.3 0.6     27 8.6 2.0
 *     3x3, 512, 4x4           9.5 4.0 4.1    31 8.7 4.2    143 37 15
 *     3x3/2, 256 to 512, 2x2  3.5 2.0 0.8   9.9 5.0 0.8     36 20 1.3
 *     3x3/2, 256 to 512, 3x3  5.2 1.9 0.9    16 6.0 1.0     64 22 2.5
 *     3x3/2, 256 to 512, 6x6  6.5 2.0 1.1    21 5.4 2.0     96 23 5.9
 *     3x3/2, 256 to 512, 8x8  8.4 2.1 1.9    27 6.8 3.5    116 23 11
 *
 * Against sums in f64, errors are 3e-8 to 9e-8 of the norm
 * (tests/test_wgrad.c).
 */
#include "config.h"

#include "amx_fill.h"
#include "amx_run.h"
#include "amx_tile.h"
#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/product/taps_pairs.h"
#include "cpu/thread.h"

#ifdef DDP__AMX

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    int steps = (s->n + DDP__AMX_STEP - 1) / DDP__AMX_STEP;
    struct ddp__taps_pairs p;

    if (s->dense || s->type != DDP_BF16 || k->groups > 1 ||
        k->kh * k->kw == 1 || s->c % 32 || s->o % 32 ||
        !ddp__taps_has_room(s) || !ddp__amx_here())
        return false;
    ddp__taps_list(s, DDP__BWD_W, &p);
    /* amx.c has a step at least for each image and tap. */
    return 2 * p.count * steps <= k->kh * k->kw * s->n;
}

/* Of one pixel, the batch is an image of one column.  Segments are pixels. */
struct run {
    const struct ddp__conv_shape *s;
    struct ddp__conv_shape column;
    struct ddp__amx_run x, dy; /* with b and a */
    struct ddp__taps_pairs pairs;
};

static void plan_pixels(const struct run *u, size_t pixels,
                        struct ddp__amx_run *r)
{
    r->s = &u->column;
    r->pitch = r->phases_y = r->phases_x = 1;
    r->rows = u->s->n;
    r->steps = ddp__divide_up((size_t)u->s->n, DDP__AMX_STEP);
    r->pairs = r->steps * DDP__AMX_PAIRS;
    r->segments = pixels;
}

static int run_new(struct run *u)
{
    const struct ddp__conv_shape *s = u->s;
    size_t x = (size_t)(s->h * s->w), y = (size_t)(s->oh * s->ow), images;

    u->column = *s;
    u->column.h = u->column.oh = s->n;
    u->column.n = u->column.w = u->column.ow = 1;
    u->column.conv = ddp__conv_plain(1, 1);
    u->x = (struct ddp__amx_run){.x_row = x * (size_t)s->c};
    u->dy = (struct ddp__amx_run){.dy_row = y * (size_t)s->o};
    plan_pixels(u, x, &u->x);
    plan_pixels(u, y, &u->dy);
    images = u->x.steps * DDP__AMX_STEP;
    u->dy.a = ddp__scratch(images * (x * (size_t)s->c + y * (size_t)s->o) *
                           sizeof(*u->dy.a));
    u->x.b = u->dy.a + images * y * (size_t)s->o;
    return u->dy.a ? 0 : DDP_ENOMEM;
}

/* 32 outputs times 32 channels of one pair of pixels. */
DDP__AMX_TARGET static void multiply_pair(const struct run *u, size_t o,
                                          size_t c, size_t dy, size_t x)
{
    const uint16_t *a0 = ddp__amx_a(&u->dy, o / 16, dy);
    const uint16_t *a1 = ddp__amx_a(&u->dy, o / 16 + 1, dy);
    const uint16_t *b0 = ddp__amx_b(&u->x, 0, 0, c / 16, x);
    const uint16_t *b1 = ddp__amx_b(&u->x, 0, 0, c / 16 + 1, x);

    for (size_t i = 0; i < u->x.steps; i++) {
        size_t at = i * 16 * DDP__AMX_ROW;

        ddp__amx_multiply(a0 + at, a1 + at, b0 + at, b1 + at);
    }
}

DDP__AMX_TARGET static void multiply_tap(const struct run *u, size_t o,
                                         size_t c, size_t tap, bool add,
                                         float *dw, size_t pitch)
{
    const struct ddp__taps_target *q = &u->pairs.target[tap];

    ddp__amx_begin(dw, pitch, add);
    for (size_t i = 0; i < q->count; i++)
        multiply_pair(u, o, c, q->from[i], q->by[i]);
    ddp__amx_end(dw, pitch);
}

DDP__AMX_TARGET static void multiply_all(const struct run *u, bool add,
                                         float *dw)
{
    struct ddp__amx_tiles t = ddp__amx_tiles();
    size_t c = (size_t)u->s->c;
    size_t taps = (size_t)(u->s->conv.kh * u->s->conv.kw);

    ddp__amx_configure(&t);
    for (size_t j = 0; j < c; j += 32)
        for (size_t o = 0; o < (size_t)u->s->o; o += 32)
            for (size_t tap = 0; tap < taps; tap++)
                multiply_tap(u, o, j, tap, add, dw + (o * taps + tap) * c + j,
                             taps * c);
    _tile_release();
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    struct run u = {.s = s};
    size_t c = (size_t)s->c, o = (size_t)s->o;

    if (run_new(&u) < 0)
        return DDP_ENOMEM;
    ddp__taps_list(s, DDP__BWD_W, &u.pairs);
    for (size_t i = 0; i < u.dy.segments; i++)
        ddp__amx_fill_a(&u.dy, (const uint16_t *)dy + i * o, 0, i);
    for (size_t i = 0; i < u.x.segments; i++)
        ddp__amx_fill_b(&u.x, (const uint16_t *)x + i * c, 0, 0, i);
    multiply_all(&u, accumulate, dw);
    return 0;
}

const struct ddp__gradient ddp__amx_taps = {
    .name = "products of taps on AMX", .fits = fits, .run = run};

#endif
