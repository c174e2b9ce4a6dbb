/* taps.c - convolutions of images of few pixels, without padding
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Between them, 2x2 pixels of input and output have 16 pairs that a tap joins:
 * with padding they would have 36.  One of two busy cores of an Intel Xeon
 * (AVX-512, AMX) under load, milliseconds of forward, data gradient and weight
 * gradient as they were (oneDNN 3; W: Winograd, P: products over pixels) and in
 * this way, each time from memory; kernelbench has more:
 *
 *     64 images:
 *     3x3, 512, 2x2 pixels         26    29    28       3.5  4.6  3.1
 *     3x3, 512, 3x3 pixels         W 12  W 14  W 19     9.9   11  9.3
 *     3x3, 256, 3x3 pixels         W 3.3 W 4.2 W 3.8    2.5  2.8  2.8
 *     3x3/2, 256 to 512, 3x3       13    5.7   P 3.6    2.0  2.5  1.7
 *     3x3/2, 256 to 512, 5x5       16    9.5   P 8.1    5.7  6.2  5.5
 *     3x3/2, 256 to 512, 6x6       18    11    P 7.9    7.3  7.6  7.3
 *     3x3/2, 256 to 512, 8x8       22    16    P 13     14   13   14
 *     256 images:
 *     3x3, 512, 2x2 pixels         97    95    98       13   14   13
 *     3x3, 512, 3x3 pixels         W 40  W 41  W 58     36   39   37
 *     3x3/2, 256 to 512, 2x2       2.5   2.6   3.0      1.9  1.9  2.4
 *
 * With 4x4 pixels of stride 1 Winograd's way is up to twice as fast.  A Zen 4,
 * 128 images: 3x3/2, 128 to 256, 4x4 pixels 3.5 3.2 3.1, 2.2 2.1 2.2.
 *
 * Weights are packed in the cache for each run: that takes a fifth of it with
 * 64 images of 2x2 pixels, and needs no copy of all of them.  A sum has the
 * order of taps, and for each that of channels; errors are up to 3e-7 of the
 * norm (tests/test_taps.c).
 */
#include "config.h"

#include <math.h>

#include "cpu/cpu.h"
#include "cpu/isa.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/wino/wino_kind.h"
#include "patch.h"
#include "taps.h"
#include "taps_pairs.h"
#include "taps_tile.h"

enum { ROWS = DDP__TAPS_ROWS, COLS = DDP__TAPS_COLS };

/* ---- which layers ------------------------------------------------------- */

/* Tiles of Winograd's are of 4 x 4 pixels, and of 36 products. */
enum { TILE = 4, PRODUCTS = 36 };

static bool has_shape(const struct ddp__conv_shape *s, enum ddp__conv_pass pass)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_F32 && !s->sum && k->groups == 1 &&
           k->kh * k->kw > 1 && s->c % COLS == 0 && s->o % COLS == 0 &&
           (pass != DDP__FWD || k->act <= DDP_RELU6) && ddp__taps_has_room(s);
}

/* Half as many products more than Winograd's way has cost less than its
 * transforms and larger weights. */
static bool beats_winograd(const struct ddp__conv_shape *s, int products)
{
    int tiles = ddp__wino_tiles(s->oh, TILE) * ddp__wino_tiles(s->ow, TILE);

    return !ddp__wino_fits(s) ||
           (!ddp__wino_is_line(s) && 2 * products <= 3 * PRODUCTS * tiles);
}

/* Of the products of a convolution with padding: of weight gradients three of
 * ten. */
static bool saves_products(const struct ddp__conv_shape *s,
                           enum ddp__conv_pass pass, int products)
{
    int all = s->oh * s->ow * s->conv.kh * s->conv.kw;

    return pass != DDP__BWD_W || 10 * products <= 7 * all;
}

bool ddp__taps_fits(const struct ddp__conv_shape *s, enum ddp__conv_pass pass)
{
    struct ddp__taps_pairs p;

    if (!has_shape(s, pass) || ddp__patch_of(s).is_skinny ||
        !ddp__avx512_here())
        return false;
    ddp__taps_list(s, pass, &p);
    return beats_winograd(s, p.count) && saves_products(s, pass, p.count);
}

/* ---- panels ------------------------------------------------------------- */

/* A layer, or its data gradient.  Panels: of blocks of images of each pixel,
 * and of weights of each tap, of COLS channels of the result. */
struct run {
    const struct ddp__conv_shape *s;
    bool turned; /* the data gradient */
    struct ddp__taps_pairs pairs;
    size_t n, high, blocks; /* images, of a block */
    size_t taps;
    size_t from, k;  /* pixels and channels of in */
    size_t to, cols; /* of out */
    const float *in, *w, *bias;
    float *out, *images, *weights;
    bool past;
};

static size_t rows_of(const struct run *r, size_t block)
{
    size_t left = r->n - block * r->high;

    return left < r->high ? left : r->high;
}

static float *images_of(const struct run *r, size_t block, size_t pixel)
{
    return r->images + (block * r->from + pixel) * r->k * ROWS;
}

static void turn_images(const struct run *r)
{
    for (size_t i = 0; i < r->blocks; i++)
        for (size_t p = 0; p < r->from; p++)
            ddp__taps_turn(r->in + (i * r->high * r->from + p) * r->k,
                           r->from * r->k, r->k, rows_of(r, i), ROWS,
                           images_of(r, i, p));
}

/* COLS filters lie in one piece of w[o][tap][c]; of COLS channels there are
 * lines, which no other order or prefetch makes faster to read. */
static void pack_weights(const struct run *r, size_t column)
{
    size_t c = (size_t)r->s->c, step = r->taps * c;

    for (size_t tap = 0; tap < r->taps; tap++) {
        const float *w = r->w + tap * c;
        float *to = r->weights + tap * r->k * COLS;

        if (!r->pairs.used[tap])
            continue;
        if (r->turned)
            ddp__taps_copy(w + column, step, r->k, COLS, COLS, to);
        else
            ddp__taps_turn(w + column * step, step, r->k, COLS, COLS, to);
    }
}

/* ---- forward and data gradient ------------------------------------------ */

static void multiply(const struct run *r, size_t block, size_t pixel,
                     size_t column)
{
    const struct ddp__taps_target *q = &r->pairs.target[pixel];
    enum ddp_act act = r->turned ? DDP_IDENTITY : r->s->conv.act;
    size_t at = (block * r->high * r->to + pixel) * r->cols + column;
    struct ddp__taps_tile t = {.rows = rows_of(r, block),
                               .k = r->k,
                               .count = q->count,
                               .bias = r->bias ? r->bias + column : NULL,
                               .low = act == DDP_IDENTITY ? -INFINITY : 0,
                               .high = act == DDP_RELU6 ? 6 : INFINITY,
                               .past = r->past,
                               .p = r->out + at,
                               .ldp = r->to * r->cols};

    for (size_t i = 0; i < q->count; i++)
        t.piece[i] = (struct ddp__taps_piece){
            images_of(r, block, q->from[i]),
            r->weights + q->by[i] * r->k * COLS,
        };
    ddp__taps_tile(&t);
}

static int run_new(struct run *r)
{
    size_t images = r->blocks * r->from * r->k * ROWS;

    r->images =
        ddp__scratch((images + r->taps * r->k * COLS) * sizeof(*r->images));
    r->weights = r->images + images;
    return r->images ? 0 : DDP_ENOMEM;
}

static int run_all(struct run *r)
{
    if (run_new(r) < 0)
        return DDP_ENOMEM;
    turn_images(r);
    for (size_t column = 0; column < r->cols; column += COLS) {
        pack_weights(r, column);
        for (size_t i = 0; i < r->blocks; i++)
            for (size_t p = 0; p < r->to; p++)
                multiply(r, i, p, column);
    }
    if (r->past)
        ddp__store_end();
    return 0;
}

int ddp__taps_run(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                  const float *in, const float *w, const float *bias,
                  float *out)
{
    size_t x = (size_t)(s->h * s->w), y = (size_t)(s->oh * s->ow);
    struct run r = {.s = s,
                    .turned = pass == DDP__BWD_X,
                    .n = (size_t)s->n,
                    .blocks = ddp__divide_up((size_t)s->n, ROWS),
                    .taps = (size_t)(s->conv.kh * s->conv.kw),
                    .in = in,
                    .w = w,
                    .bias = bias,
                    .out = out};

    r.high = ddp__divide_up(r.n, r.blocks);
    r.from = r.turned ? y : x;
    r.k = (size_t)(r.turned ? s->o : s->c);
    r.to = r.turned ? x : y;
    r.cols = (size_t)(r.turned ? s->c : s->o);
    r.past =
        (uintptr_t)out % 64 == 0 && ddp__streams(r.n * r.to * r.cols, false);
    ddp__taps_list(s, pass, &r.pairs);
    return run_all(&r);
}
