/* amx.c - weight gradients of bf16 convolutions on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An image becomes one long run of positions, in rows of `pitch`: outputs
 * first, then as many columns as the taps reach beyond them, where dy counts
 * as 0.  A tap is then a shift along the run.  With strides, x falls into
 * phases (pixels sh i + a, sw j + b), each a dense image of its own.
 *
 *     a  dy turned: [o / 16][step][16 outputs o][32 positions]
 *     b  x by pairs of positions: [c / 16][pair][16 channels][2]; twice, with
 *        pairs that begin at even and at odd positions, for shifts of both
 *        kinds
 *
 * Few channels would leave tiles empty: the columns of a tap's row then count
 * as channels, which lie side by side in memory anyway.
 *
 * A segment is some rows of an image; a block is some segments, whose products
 * are added up in tiles before they go to memory.
 *
 * With one tap, images are joined: their pixels fill steps together.
 *
 * One core with AMX (2.6 GHz, 2 MiB of second level) under load, eight images
 * from memory, milliseconds of processor time by oneDNN 2.6 and in this way,
 * the least of three runs of `tests/kernelbench amx:`:
 *
 *     7x7/2, 224x224, 3 to 64      9.98 4.10   3x3, 56x56, 64       2.08 1.71
 *     1x1, 56x56, 64 to 64         0.95 0.74   3x3, 28x28, 128      2.05 1.49
 *     1x1, 56x56, 64 to 256        3.43 1.79   3x3, 14x14, 256      3.28 1.59
 *     1x1, 56x56, 256 to 64        4.41 1.85   3x3, 7x7, 512        6.48 3.62
 *     1x1, 28x28, 512 to 128       3.11 1.23   3x3/2, 56x56, 128    4.46 2.92
 *     1x1, 14x14, 256 to 1024      3.16 1.44   3x3/2, 28x28, 256    7.20 3.21
 *     1x1, 7x7, 512 to 2048        5.99 1.63   3x3/2, 14x14, 512   14.29 4.37
 *     1x1/2, 28x28, 512 to 1024   10.97 2.86   1x1/2, 14x14, 1024  18.08 3.59
 *     all of ResNet-50              257   98
 *
 * Of 1x1 layers up to 2^17 weights, and numbers of channels that are no
 * multiple of 32, are those of amx_wgrad.c.
 *
 * No shape is known for which oneDNN is faster: 40 others, of one to 64 images
 * and 1x1 to 224x224 pixels, took 0.24 to 0.94 of its time before images were
 * joined.
 */
#include "config.h"

#include "amx_fill.h"
#include "amx_run.h"
#include "amx_tile.h"
#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/thread.h"

#ifdef DDP__AMX

/* Of a block: with one tap, no rows are read twice where segments meet, and
 * fewer steps remain in the second level. */
enum { BLOCK_STEPS = 64, BLOCK_STEPS_OF_ONE = 32 };

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_BF16 && k->groups == 1 && k->dh == 1 &&
           k->dw == 1 && s->o % 32 == 0 &&
           (s->c % 32 == 0 || s->c * k->kw <= DDP__AMX_ROW) && ddp__amx_here();
}

/* ---- geometry ----------------------------------------------------------- */

/* Segments of about `want` steps, as many of them as make a block of that. */
static void plan_segments(struct ddp__amx_run *r, size_t want)
{
    const struct ddp__conv_shape *s = r->s;
    const struct ddp__conv *k = &s->conv;
    size_t all;

    r->reach_y = (k->kh - 1) / k->sh;
    r->reach_x = (k->kw - 1) / k->sw;
    r->pitch = s->ow + r->reach_x;
    r->phases_y = ddp__min_int(k->sh, k->kh);
    r->phases_x = ddp__min_int(k->sw, k->kw);
    r->rows =
        (int)((want * DDP__AMX_STEP + (size_t)r->pitch - 1) / (size_t)r->pitch);
    r->rows = ddp__min_int(r->rows, s->oh);
    r->per_image = (size_t)((s->oh + r->rows - 1) / r->rows);
    r->rows = (s->oh + (int)r->per_image - 1) / (int)r->per_image;
    r->steps = ((size_t)r->rows * (size_t)r->pitch + DDP__AMX_STEP - 1) /
               DDP__AMX_STEP;
    r->pairs =
        r->steps * DDP__AMX_PAIRS +
        ((size_t)r->reach_y * (size_t)r->pitch + (size_t)r->reach_x) / 2 + 1;
    all = r->per_image * (size_t)s->n;
    r->segments = want / r->steps ? want / r->steps : 1;
    r->segments = r->segments < all ? r->segments : all;
}

static size_t size_a(const struct ddp__amx_run *r)
{
    return (size_t)r->s->o * r->segments * r->steps * DDP__AMX_STEP;
}

static size_t size_b(const struct ddp__amx_run *r)
{
    return (size_t)r->s->c * 4 * r->segments * r->pairs *
           (size_t)(r->phases_y * r->phases_x);
}

/* ---- products ----------------------------------------------------------- */

/* 32 outputs times 32 channels of one tap, over `count` segments.  shift:
 * pairs. */
DDP__AMX_TARGET static void multiply_tiles(const struct ddp__amx_run *r,
                                           size_t o, size_t c, int phase,
                                           int odd, size_t shift, size_t count,
                                           bool add, float *dw, size_t pitch)
{
    ddp__amx_begin(dw, pitch, add);
    for (size_t s = 0; s < count; s++) {
        const uint16_t *a0 = ddp__amx_a(r, o / 16, s),
                       *a1 = ddp__amx_a(r, o / 16 + 1, s);
        const uint16_t *b0 =
            ddp__amx_b(r, phase, odd, c / 16, s) + shift * DDP__AMX_ROW;
        const uint16_t *b1 =
            ddp__amx_b(r, phase, odd, c / 16 + 1, s) + shift * DDP__AMX_ROW;

        for (size_t i = 0; i < r->steps; i++) {
            size_t at = i * 16 * DDP__AMX_ROW;

            ddp__amx_multiply(a0 + at, a1 + at, b0 + at, b1 + at);
        }
    }
    ddp__amx_end(dw, pitch);
}

static void multiply_taps(const struct ddp__amx_run *r, size_t count, bool add,
                          float *dw)
{
    const struct ddp__conv *k = &r->s->conv;
    size_t taps = (size_t)(k->kh * k->kw), c = (size_t)r->s->c;

    for (size_t j = 0; j < c; j += 32)
        for (size_t o = 0; o < (size_t)r->s->o; o += 32)
            for (size_t t = 0; t < taps; t++) {
                int ky = (int)t / k->kw, kx = (int)t % k->kw;
                int phase = ky % k->sh * r->phases_x + kx % k->sw;
                int shift = ky / k->sh * r->pitch + kx / k->sw;

                multiply_tiles(r, o, j, phase, shift % 2, (size_t)(shift / 2),
                               count, add, dw + (o * taps + t) * c + j,
                               taps * c);
            }
}

DDP__AMX_TARGET static void configure_tiles(void)
{
    struct ddp__amx_tiles t = ddp__amx_tiles();

    ddp__amx_configure(&t);
}

DDP__AMX_TARGET static void release_tiles(void)
{
    _tile_release();
}

/* All of r; a and b have their memory. */
static void run_segments(const struct ddp__amx_run *r, bool accumulate,
                         float *dw)
{
    size_t all = r->per_image * (size_t)r->s->n, count;

    configure_tiles();
    for (size_t i = 0; i < all; i += count) {
        count = all - i < r->segments ? all - i : r->segments;
        ddp__amx_fill(r, i, count);
        multiply_taps(r, count, accumulate || i > 0, dw);
    }
    release_tiles();
}

/* Copy images with their padding to the left and right. */
static void pad_rows(const struct ddp__conv_shape *s, const uint16_t *x,
                     size_t row, uint16_t *to)
{
    size_t left = (size_t)(s->conv.left * s->c);
    size_t len = (size_t)(s->w * s->c);

    for (size_t i = 0; i < (size_t)s->n * (size_t)s->h; i++, to += row) {
        memset(to, 0, row * sizeof(*to));
        memcpy(to + left, x + i * len, len * sizeof(*to));
    }
    memset(to, 0, DDP__AMX_ROW * sizeof(*to));
}

/* The layer with columns of taps as channels: `wide` is its x. */
static struct ddp__conv_shape unroll_taps(const struct ddp__conv_shape *s)
{
    struct ddp__conv_shape u = *s;

    u.w = s->conv.left + s->w + s->conv.right;
    u.c = DDP__AMX_ROW;
    u.conv.kw = 1;
    u.conv.left = u.conv.right = 0;
    return u;
}

/* Few channels. */
static int bwd_w_narrow(const struct ddp__conv_shape *s, const void *x,
                        const void *dy, bool accumulate, float *dw)
{
    struct ddp__conv_shape u = unroll_taps(s);
    struct ddp__amx_run r = {.s = &u,
                             .dy = dy,
                             .x_row = (size_t)(u.w * s->c),
                             .dy_row = (size_t)(s->ow * s->o),
                             .x_pixel = (size_t)s->c};
    size_t size = ((size_t)s->n * (size_t)s->h * r.x_row + 2 * DDP__AMX_ROW) &
                  ~(size_t)31;
    size_t rows = (size_t)(s->o * s->conv.kh),
           len = (size_t)(s->conv.kw * s->c);
    uint16_t *wide;
    float *sum;

    plan_segments(&r, BLOCK_STEPS);
    wide = ddp__scratch((size + size_a(&r) + size_b(&r)) * sizeof(*wide) +
                        rows * DDP__AMX_ROW * sizeof(*sum));
    if (!wide)
        return DDP_ENOMEM;
    r.x = wide;
    r.a = wide + size;
    r.b = r.a + size_a(&r);
    sum = (float *)(void *)(r.b + size_b(&r));
    pad_rows(s, x, r.x_row, wide);
    run_segments(&r, false, sum);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < len; j++)
            dw[i * len + j] =
                (accumulate ? dw[i * len + j] : 0) + sum[i * DDP__AMX_ROW + j];
    return 0;
}

/* With one tap images are rows of one image, so that few steps are not full. */
static struct ddp__conv_shape join_images(const struct ddp__conv_shape *s)
{
    struct ddp__conv_shape u = *s;

    if (s->conv.kh * s->conv.kw == 1 && s->conv.top == 0 &&
        s->h == s->oh * s->conv.sh) {
        u.n = 1;
        u.h = s->n * s->h;
        u.oh = s->n * s->oh;
    }
    return u;
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    struct ddp__conv_shape u = join_images(s);
    struct ddp__amx_run r = {.s = &u,
                             .x = x,
                             .dy = dy,
                             .x_row = (size_t)s->w * (size_t)s->c,
                             .x_pixel = (size_t)s->c,
                             .dy_row = (size_t)s->ow * (size_t)s->o};

    if (s->c % 32 != 0)
        return bwd_w_narrow(s, x, dy, accumulate, dw);
    plan_segments(&r, s->conv.kh * s->conv.kw == 1 ? BLOCK_STEPS_OF_ONE
                                                   : BLOCK_STEPS);
    if (!(r.a = ddp__scratch((size_a(&r) + size_b(&r)) * sizeof(*r.a))))
        return DDP_ENOMEM;
    r.b = r.a + size_a(&r);
    run_segments(&r, accumulate, dw);
    return 0;
}

const struct ddp__gradient ddp__amx = {.name = "AMX", .fits = fits, .run = run};

#endif
