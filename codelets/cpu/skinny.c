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
 * does not fit or its filters fill the caches.  Compiled for AVX2 the vectors
 * are in memory: 16 rows by 512 to 512 take 0.47, 0.09, 2.9 ms, by oneDNN 0.09,
 * 0.10, 0.09.  So these loops need AVX-512.
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
 * Most of oneDNN's forward passes and data gradients is packing, which a step
 * does once for all sub-batches: data gradients of more than 8 samples are left
 * to it.
 */
#include "config.h"

#include "base/team.h"
#include "cpu.h"
#include "skinny.h"
#include "skinny_product.h"
#include "skinny_wgrad.h"
#include "thread.h"
#include "vmath.h"

enum {
    MOST_SAMPLES = 16,
    MOST_OF_BF16_BWD_X = 8,
    SHARE = 1 << 17, /* weights that idle workers may take: some 10 us */
    PARTS = DDP__SKINNY_PARTS,
    ROWS = DDP__SKINNY_ROWS,
    COUNT = 4,  /* rows of x that they are multiplied with at a time */
    PIECE = 512 /* of a row of weights, of which ROWS are in the first-level
                   cache */
};

typedef ddp__parts parts;

bool ddp__skinny_here(void)
{
#ifdef DDP__V16
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

bool ddp__skinny_fits(const struct ddp__dnn_shape *s, enum ddp__dnn_pass pass)
{
    bool less = s->type == DDP_BF16 && pass == DDP__BWD_X;

    return s->dense && s->n <= (less ? MOST_OF_BF16_BWD_X : MOST_SAMPLES) &&
           !s->sum && ddp__skinny_here();
}

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- forward ------------------------------------------------------------ */

/* In halves, quarters and so on. */
DDP__SKINNY_INLINE float add_parts(parts p)
{
    typedef int places __attribute__((vector_size(sizeof(parts))));

    p += __builtin_shuffle(
        p, (places){8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
    p += __builtin_shuffle(
        p, (places){4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3});
    p += __builtin_shuffle(
        p, (places){2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1});
    return p[0] + p[1];
}

/* Add w x to the parts of a sum for each of `rows` rows of w and the `count`
 * rows of x from `first` on; rows and count are constants. */
DDP__SKINNY_INLINE void multiply_block(const struct ddp__skinny_product *p,
                                       const struct ddp__skinny_tap *t,
                                       size_t first, const float *w,
                                       const float *x, size_t len, size_t rows,
                                       size_t count, parts *sums)
{
    parts sum[ROWS * COUNT], a, b[COUNT];
    const float *from[COUNT];

#pragma GCC unroll 4
    for (size_t k = 0; k < count; k++) {
        from[k] = x + t->at[first + k];
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            sum[k * rows + r] = sums[t->row[first + k] * rows + r];
    }
    for (size_t i = 0; i < len; i += PARTS) {
#pragma GCC unroll 4
        for (size_t k = 0; k < count; k++)
            memcpy(&b[k], from[k] + i, sizeof(*b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
            memcpy(&a, w + r * p->in + i, sizeof(a));
#pragma GCC unroll 4
            for (size_t k = 0; k < count; k++)
                sum[k * rows + r] += a * b[k];
        }
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < count; k++)
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            sums[t->row[first + k] * rows + r] = sum[k * rows + r];
}

/* A piece of ROWS rows or one of w with all rows of x under a tap. */
DDP__SKINNY_INLINE void multiply_piece(const struct ddp__skinny_product *p,
                                       const struct ddp__skinny_tap *t,
                                       const float *w, const float *x,
                                       size_t len, size_t rows, parts *sums)
{
    size_t i = 0;

    for (; i + COUNT <= t->n; i += COUNT)
        multiply_block(p, t, i, w, x, len, rows, COUNT, sums);
    for (; i + 2 <= t->n; i += 2)
        multiply_block(p, t, i, w, x, len, rows, 2, sums);
    if (i < t->n)
        multiply_block(p, t, i, w, x, len, rows, 1, sums);
}

/* What PARTS leaves of ROWS rows or one of w. */
static void multiply_rest(const struct ddp__skinny_product *p,
                          const struct ddp__skinny_tap *t, const float *w,
                          const float *x, size_t whole, size_t rows, float *y)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t r = 0; r < rows; r++)
            for (size_t k = whole; k < p->c; k++)
                y[t->row[i] * p->out + r] += w[r * p->in + k] * x[t->at[i] + k];
}

/* ROWS rows or one of w, a piece after the other, so that it comes from memory
 * once. */
DDP__SKINNY_INLINE void multiply_rows(const struct ddp__skinny_product *p,
                                      const float *w, const float *x,
                                      size_t rows, float *y)
{
    parts sums[ROWS * DDP__SKINNY_MOST];
    size_t whole = p->c - p->c % PARTS, len;

    memset(sums, 0, rows * p->n * sizeof(*sums));
    for (size_t tap = 0; tap < p->x->taps; tap++)
        for (size_t at = 0; at < whole; at += len) {
            len = min_of(whole - at, PIECE);
            multiply_piece(p, &p->x->tap[tap], w + tap * p->c + at, x + at, len,
                           rows, sums);
        }
    for (size_t i = 0; i < p->n; i++)
        for (size_t r = 0; r < rows; r++)
            y[i * p->out + r] = add_parts(sums[i * rows + r]);
    for (size_t tap = 0; tap < p->x->taps && whole < p->c; tap++)
        multiply_rest(p, &p->x->tap[tap], w + tap * p->c, x, whole, rows, y);
}

/* Outputs first .. end - 1 of all rows. */
DDP__SKINNY static void multiply(const struct ddp__skinny_product *p,
                                 const float *w, const float *x, size_t first,
                                 size_t end, float *y)
{
    size_t o = first;

    for (; o + ROWS <= end; o += ROWS)
        multiply_rows(p, w + o * p->in, x, ROWS, y + o);
    for (; o < end; o++)
        multiply_rows(p, w + o * p->in, x, 1, y + o);
}

struct forward {
    const struct ddp__dnn_shape *s;
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

    multiply(p, f->w, f->x, first, end, f->y);
    for (size_t n = 0; n < p->n; n++)
        for (size_t o = first; o < end; o++) {
            float *y = f->y + n * p->out + o;

            *y = ddp__act(*y + (bias ? bias[o] : 0), f->s->conv.act);
        }
    return 0;
}

/* An output's bits do not depend on the share that it is in. */
static int run_forward(const struct ddp__dnn_shape *s,
                       const struct ddp__skinny_product *p, const float *x,
                       const float *w, float *y)
{
    int shares = ddp__team_parts(p->in * p->out, SHARE);
    struct forward f = {s, p, x, w, y, (size_t)shares};

    return ddp__team_each(shares, run_share, &f);
}

/* ---- data gradient ------------------------------------------------------ */

/* dx += dy w, for ROWS rows of w and `count` rows of dx, a constant. */
DDP__SKINNY_INLINE void add_rows(const float *restrict w,
                                 const float *const *dy, size_t in, size_t len,
                                 size_t count, float *restrict dx)
{
    for (size_t i = 0; i < len; i++)
#pragma GCC unroll 2
        for (size_t k = 0; k < count; k++)
            dx[k * len + i] +=
                (dy[k][0] * w[i] + dy[k][1] * w[in + i]) +
                (dy[k][2] * w[2 * in + i] + dy[k][3] * w[3 * in + i]);
}

/* The sums of all rows of dx. */
DDP__SKINNY_INLINE void add_row_pairs(const struct ddp__skinny_product *p,
                                      const struct ddp__skinny_tap *t,
                                      const float *w, const float *dy,
                                      size_t len, float *sums)
{
    size_t i = 0;

    for (; i + 2 <= t->n; i += 2)
        add_rows(w,
                 (const float *[]){dy + t->row[i] * p->out,
                                   dy + t->row[i + 1] * p->out},
                 p->in, len, 2, sums + i * len);
    if (i < t->n)
        add_rows(w, (const float *[]){dy + t->row[i] * p->out}, p->in, len, 1,
                 sums + i * len);
}

/* So many columns of dx under a tap, which begin where w and dx do; the sums
 * of each row become part of dx when they are complete. */
DDP__SKINNY static void add_columns(const struct ddp__skinny_product *p,
                                    const struct ddp__skinny_tap *t,
                                    const float *w, const float *dy, size_t len,
                                    float *dx)
{
    float sums[DDP__SKINNY_CACHED];
    size_t o = 0;

    memset(sums, 0, t->n * len * sizeof(*sums));
    for (; o + ROWS <= p->out; o += ROWS)
        add_row_pairs(p, t, w + o * p->in, dy + o, len, sums);
    for (; o < p->out; o++)
        for (size_t i = 0; i < t->n; i++)
            ddp__skinny_add(w + o * p->in, dy[t->row[i] * p->out + o], len,
                            sums + i * len);
    for (size_t i = 0; i < t->n; i++)
        ddp__skinny_add(sums + i * len, 1, len, dx + t->at[i]);
}

/* Backwards, taps meet a pixel in the order of the outputs. */
static void run_data_gradient(const struct ddp__skinny_product *p, float *dx,
                              const float *w, const float *dy)
{
    memset(dx, 0, p->x->len * sizeof(*dx));
    for (size_t tap = p->x->taps; tap-- > 0;) {
        const struct ddp__skinny_tap *t = &p->x->tap[tap];
        size_t len = ddp__skinny_piece(t);

        for (size_t at = 0; at < p->c && t->n; at += len)
            add_columns(p, t, w + tap * p->c + at, dy, min_of(len, p->c - at),
                        dx + at);
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

static int run_pass(const struct ddp__dnn_shape *s, enum ddp__dnn_pass pass,
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

DDP__CLONES static void widen(const uint16_t *restrict from, size_t len,
                              float *restrict to)
{
    for (size_t i = 0; i < len; i++)
        to[i] = ddp__from_bf16(from[i]);
}

DDP__CLONES static void narrow(const float *restrict from, size_t len,
                               uint16_t *restrict to)
{
    for (size_t i = 0; i < len; i++)
        to[i] = ddp__round_bf16(from[i]);
}

int ddp__skinny_run(const struct ddp__task *t, const struct ddp__dnn_shape *s,
                    enum ddp__dnn_pass pass, const struct ddp__skinny_x *from)
{
    struct ddp__skinny_product p = {(size_t)s->n, (size_t)s->o,
                                    (size_t)s->c / from->taps, (size_t)s->c,
                                    from};
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
        widen(x, from->len, wide_x);
    if (pass != DDP__FWD)
        widen(y, len, wide_y);
    rc = run_pass(s, pass, &p, t->accumulate, wide_x, w, wide_y);
    if (pass == DDP__FWD)
        narrow(wide_y, len, y);
    else if (pass == DDP__BWD_X)
        narrow(wide_x, from->len, x);
    return rc;
}

int ddp__skinny_dense(const struct ddp__task *t, const struct ddp__dnn_shape *s,
                      enum ddp__dnn_pass pass)
{
    struct ddp__skinny_tap all = {.n = (size_t)s->n};
    struct ddp__skinny_x x = {(size_t)s->n * (size_t)s->c, 1, &all};

    for (size_t i = 0; i < all.n; i++) {
        all.row[i] = i;
        all.at[i] = i * (size_t)s->c;
    }
    return ddp__skinny_run(t, s, pass, &x);
}
