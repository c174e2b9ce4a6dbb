/* skinny.c - products with few rows: dense layers of few samples, convolutions
 * of few pixels (patch.c); weight gradients are in skinny_wgrad.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * So few rows use a weight only a few times, and to pack it for oneDNN (pack.c)
 * or Winograd (wino.c), as after each update, costs more than the product.
 * These loops read weights and write their gradients where they are, and no
 * copy takes memory: 0.8 GB for the first dense layer of VGG-16.
 *
 * One Zen 5 core, weights changed before, milliseconds of forward and both
 * gradients by oneDNN 2.6 (3x3, 7x7: by Winograd), and in this way:
 *
 *     dense, 768 to 512, 1 sample             0.11 0.14 0.11   0.02 0.01 0.01
 *     dense, 8 samples                        0.12 0.15 0.12   0.11 0.09 0.08
 *     3x3, 512 to 512, 2 images of 2x2        0.83 1.13 0.81   0.12 0.14 0.14
 *     3x3, 512 to 512, 16 images of 2x2       2.38 2.90 2.45   0.83 1.05 0.89
 *     3x3, 512 to 512, one image of 7x7       2.12 2.30 0.95   0.93 1.34 1.20
 *     3x3 stride 2, 512 to 512, to 7x7        1.40 1.40 1.75   1.07 1.40 1.30
 *     1x1, 2048 to 512, 49 pixels             1.39 0.46 0.67   0.56 0.72 0.67
 *
 * All operations of a step of ResNet-18 in two sub-batches of 16 images of
 * 48x48 pixels take 73 ms of processor time, 103 where only up to 40 pixels did
 * so and padding was multiplied.  Dense layers gain up to 16 samples,
 * convolutions up to 40 pixels, those of several taps up to 64 where Winograd
 * does not fit or its filters fill the caches.  With AVX2, dense layers of 64
 * samples lose: 611 and 477 ms for a data gradient and a forward pass of 25088
 * to 4096 (an Intel Xeon under load), where oneDNN's take 302 and 350.
 *
 * Errors relative to f64 of the dense layer were 5.0e-7, 3.9e-7, 4.0e-8 by
 * oneDNN; they are at most 1.4e-7, 2.1e-7, 4.0e-8.  Those of 16 images of 2x2
 * pixels and 256 channels were 5.8e-7, 5.8e-7, 9.6e-8 and are 1.6e-7, 1.6e-7,
 * 1.1e-7; of one image of 7x7 pixels and 512 channels 2.0e-6, 2.0e-6, 3.6e-7 by
 * Winograd and 2.9e-7, 2.2e-7, 1.2e-7.
 *
 * Operands of a dense layer in bf16 are converted, for they are small, and its
 * weights are not rounded.  One of two busy cores of an Intel Xeon with AMX,
 * 4096 to 4096, weights changed before, by oneDNN and in this way:
 *
 *     4 samples        13.5 15.3 32.0    5.3  7.8 3.3
 *     8 samples        14.3 15.1 34.0    6.1 10.6 3.6
 *     16 samples       14.2 15.2 35.1    7.8 13.9 5.9
 *
 * Since forward passes fetch weights ahead and data gradients of more than 3
 * samples go by blocks (skinny_blocks.c), a core under load takes 4.6 and 5.5,
 * 4.8 and 6.2, 6.1 and 7.7 for these two, in f32.  Data gradients on a Zen 4
 * without blocks and with them: 5.4 3.0, 8.8 3.6, 9.4 5.6.
 *
 * Where up to 16 rows of x take half a MiB or more, which do not remain in the
 * second-level cache beside the weights, 16 rows of weights use each piece of
 * x instead of 4: a forward pass of 16 samples, 25088 to 4096, takes 115 and
 * 74 ms at best on one core of a Skylake with 1 MiB of that cache.  Where x
 * remains there, 16 rows gain nothing.
 *
 * Most of oneDNN's forward passes and data gradients is packing, which a step
 * does once for all sub-batches: data gradients of more than 8 samples are left
 * to it.
 */
#include "config.h"

#include "base/team.h"
#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/vmath.h"
#include "skinny.h"
#include "skinny_lanes.h"
#include "skinny_v16.h"
#include "skinny_v8.h"
#include "skinny_wgrad.h"

enum {
    MOST_SAMPLES = 16,
    MOST_OF_BF16_BWD_X = 8,
    SHARE = 1 << 17, /* weights that idle workers may take: some 10 us */
    ROWS = DDP__SKINNY_ROWS
};

const struct ddp__skinny_loops *ddp__skinny_loops(void)
{
    static const struct ddp__skinny_loops none;
    int lanes = ddp__skinny_lanes();

#ifdef DDP__X86
    if (lanes == 16)
        return &ddp__skinny_v16;
    if (lanes == 8)
        return &ddp__skinny_v8;
#endif
    (void)lanes;
    return &none;
}

bool ddp__skinny_fits(const struct ddp__conv_shape *s, enum ddp__conv_pass pass)
{
    bool less = s->type == DDP_BF16 && pass == DDP__BWD_X;

    return s->dense && s->n <= (less ? MOST_OF_BF16_BWD_X : MOST_SAMPLES) &&
           !s->sum && ddp__skinny_lanes() > 0;
}

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- forward ------------------------------------------------------------ */

struct forward {
    const struct ddp__conv_shape *s;
    const struct ddp__skinny_product *p;
    const float *x, *w;
    float *y;
    size_t shares;
};

static int run_share(void *arg, int i)
{
    const struct forward *f = arg;
    const struct ddp__skinny_product *p = f->p;
    const float *bias = f->s->conv.bias ? f->w + p->in * p->out : NULL;
    size_t at = (size_t)i, first = at * p->out / f->shares / ROWS * ROWS;
    size_t end = at + 1 < f->shares
                     ? (at + 1) * p->out / f->shares / ROWS * ROWS
                     : p->out;

    ddp__skinny_loops()->multiply(p, f->w, f->x, first, end, f->y);
    for (size_t n = 0; n < p->n; n++)
        for (size_t o = first; o < end; o++) {
            float *y = f->y + n * p->out + o;

            *y = ddp__act(*y + (bias ? bias[o] : 0), f->s->conv.act);
        }
    return 0;
}

/* An output's bits do not depend on the share that it is in. */
static int run_forward(const struct ddp__conv_shape *s,
                       const struct ddp__skinny_product *p, const float *x,
                       const float *w, float *y)
{
    int shares = ddp__team_parts(p->in * p->out, SHARE);
    struct forward f = {s, p, x, w, y, (size_t)shares};

    return ddp__team_each(shares, run_share, &f);
}

/* ---- data gradient ------------------------------------------------------ */

/* Backwards, taps meet a pixel in the order of the outputs. */
static void run_data_gradient(const struct ddp__skinny_product *p, float *dx,
                              const float *w, const float *dy)
{
    const struct ddp__skinny_loops *loops = ddp__skinny_loops();

    memset(dx, 0, p->x->len * sizeof(*dx));
    for (size_t tap = p->x->taps; tap-- > 0;) {
        const struct ddp__skinny_tap *t = &p->x->tap[tap];
        size_t len = ddp__skinny_piece(t);

        for (size_t at = 0; at < p->c && t->n; at += len)
            loops->add_columns(p, t, w + tap * p->c + at, dy,
                               min_of(len, p->c - at), dx + at);
    }
}

/* ---- passes ------------------------------------------------------------- */

/* Where x, w and y are in a task's data. */
static const int operands[][3] = {
    [DDP__FWD] = {DDP__CONV_FWD_X, DDP__CONV_FWD_W, DDP__CONV_FWD_Y},
    [DDP__BWD_X] = {DDP__CONV_BWD_X_DX, DDP__CONV_BWD_X_W, DDP__CONV_BWD_X_DY},
    [DDP__BWD_W] = {DDP__CONV_BWD_W_X, DDP__CONV_BWD_W_G, DDP__CONV_BWD_W_DY},
};
_Static_assert((int)DDP__DENSE_FWD_W == (int)DDP__CONV_FWD_W &&
                   (int)DDP__DENSE_BWD_X_DX == (int)DDP__CONV_BWD_X_DX &&
                   (int)DDP__DENSE_BWD_W_G == (int)DDP__CONV_BWD_W_G,
               "dense layers have theirs where convolutions do");

static int run_pass(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                    const struct ddp__skinny_product *p, bool accumulate,
                    float *x, float *w, float *y)
{
    if (pass == DDP__FWD)
        return run_forward(s, p, x, w, y);
    if (pass == DDP__BWD_X)
        run_data_gradient(p, x, w, y);
    else
        ddp__skinny_wgrad(p, x, y, s->conv.bias, accumulate, w);
    return 0;
}

DDP__CLONES static void narrow(const float *restrict from, size_t len,
                               uint16_t *restrict to)
{
    for (size_t i = 0; i < len; i++)
        to[i] = ddp__round_bf16(from[i]);
}

int ddp__skinny_run(const struct ddp__task *t, const struct ddp__conv_shape *s,
                    enum ddp__conv_pass pass, const struct ddp__skinny_x *from)
{
    struct ddp__skinny_product p = {.n = (size_t)s->n,
                                    .out = (size_t)s->o,
                                    .c = (size_t)s->c / from->taps,
                                    .in = (size_t)s->c,
                                    .x = from};
    void *x = t->data[operands[pass][0]], *y = t->data[operands[pass][2]];
    float *w = t->data[operands[pass][1]], *wide_x, *wide_y;
    size_t len = p.n * p.out, size = ddp__align(from->len * sizeof(float));
    int rc;

    if (s->type == DDP_F32)
        return run_pass(s, pass, &p, t->accumulate, x, w, y);
    if (!(wide_x = ddp__scratch(size + len * sizeof(float))))
        return DDP_ENOMEM;
    wide_y = wide_x + size / sizeof(float);
    if (pass != DDP__BWD_X)
        ddp__widen(x, from->len, wide_x);
    if (pass != DDP__FWD)
        ddp__widen(y, len, wide_y);
    rc = run_pass(s, pass, &p, t->accumulate, wide_x, w, wide_y);
    if (pass == DDP__FWD)
        narrow(wide_y, len, y);
    else if (pass == DDP__BWD_X)
        narrow(wide_x, from->len, x);
    return rc;
}

int ddp__skinny_dense(const struct ddp__task *t,
                      const struct ddp__conv_shape *s, enum ddp__conv_pass pass)
{
    struct ddp__skinny_tap all = {.n = (size_t)s->n};
    struct ddp__skinny_x x = {(size_t)s->n * (size_t)s->c, 1, &all};

    for (size_t i = 0; i < all.n; i++) {
        all.row[i] = i;
        all.at[i] = i * (size_t)s->c;
    }
    return ddp__skinny_run(t, s, pass, &x);
}
