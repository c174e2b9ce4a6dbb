/* skinny.c - products with few rows: dense layers of few samples, convolutions
 * of few pixels (patch.c)
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * So few rows use a weight only a few times, and to pack it for oneDNN (pack.c)
 * or Winograd (wino.c), as after each update, costs more than the product.
 * These loops read weights and write their gradients where they are, and no
 * copy takes memory: 0.8 GB for the first dense layer of VGG-16.
 *
 * One Zen 5 core, 768 to 512, weights changed before; microseconds of forward
 * and both gradients by oneDNN 2.6, and in this way:
 *
 *     1 sample      111 136 111    15  14  14
 *     4 samples     117 140 117    57  48  37
 *     8 samples     122 145 124   113  94  78
 *
 * Two of them, ResNet-18 on 48x48 pixels in sub-batches of 1, 2, 4, 8, images a
 * second, other programs running: 62 102 173 252 by oneDNN and Winograd,
 * 116 187 281 387 in this way.  Dense layers gain up to 16 samples,
 * convolutions up to 40 pixels.
 *
 * Errors relative to f64 were 5.0e-7, 3.9e-7, 4.0e-8; they are 1.4e-7, 2.1e-7,
 * 4.0e-8.
 */
#include "config.h"

#include "base/team.h"
#include "cpu.h"
#include "skinny.h"
#include "vmath.h"

enum {
    MOST_SAMPLES = 16,
    SHARE = 1 << 17, /* weights that idle workers may take: some 10 us */
    PARTS = 16,      /* of a sum, added in turn */
    ROWS = 4,        /* of weights that are read at a time */
    PIECE = 512,   /* of a row of weights, of which ROWS are in the first-level
                      cache */
    CACHED = 8192, /* elements of all rows of dx that are there */
    BLOCK = 2 * PARTS /* of a row whose gradient is in registers */
};

typedef float parts __attribute__((vector_size(PARTS * sizeof(float))));

bool ddp__skinny_fits(const struct ddp__dnn_shape *s)
{
    return s->dense && s->type == DDP_F32 && s->n <= MOST_SAMPLES && !s->sum;
}

/* A product: n rows, each of so many values in and out. */
struct product {
    size_t n, in, out;
};

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- forward ------------------------------------------------------------ */

DDP__INLINE float add_parts(parts p)
{
    float sum = 0;

    for (size_t i = 0; i < PARTS; i++)
        sum += p[i];
    return sum;
}

/* Add w x to the parts of a sum for each of `rows` rows of w and `count` rows
 * of x; both are constants. */
DDP__INLINE void multiply_block(const float *w, const float *x, size_t in,
                                size_t len, size_t rows, size_t count,
                                parts *to)
{
    parts sum[2 * ROWS], a, b[2];

#pragma GCC unroll 8
    for (size_t i = 0; i < rows * count; i++)
        sum[i] = to[i];
    for (size_t i = 0; i < len; i += PARTS) {
#pragma GCC unroll 2
        for (size_t k = 0; k < count; k++)
            memcpy(&b[k], x + k * in + i, sizeof(*b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
            memcpy(&a, w + r * in + i, sizeof(a));
#pragma GCC unroll 2
            for (size_t k = 0; k < count; k++)
                sum[k * rows + r] += a * b[k];
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < rows * count; i++)
        to[i] = sum[i];
}

/* ROWS or one row of w with all rows of x: a piece of w after the other, so
 * that it comes from memory once. */
DDP__INLINE void multiply_rows(const struct product *p, const float *w,
                               const float *x, size_t rows, float *y)
{
    parts sum[ROWS * DDP__SKINNY_MOST];
    size_t whole = p->in - p->in % PARTS, len, i;

    memset(sum, 0, rows * p->n * sizeof(*sum));
    for (size_t at = 0; at < whole; at += len) {
        len = min_of(whole - at, PIECE);
        for (i = 0; i + 2 <= p->n; i += 2)
            multiply_block(w + at, x + i * p->in + at, p->in, len, rows, 2,
                           sum + i * rows);
        if (i < p->n)
            multiply_block(w + at, x + i * p->in + at, p->in, len, rows, 1,
                           sum + i * rows);
    }
    for (i = 0; i < p->n; i++)
        for (size_t r = 0; r < rows; r++) {
            float dot = add_parts(sum[i * rows + r]);

            for (size_t k = whole; k < p->in; k++)
                dot += w[r * p->in + k] * x[i * p->in + k];
            y[i * p->out + r] = dot;
        }
}

/* Outputs first .. end - 1 of all rows. */
DDP__CLONES static void multiply(const struct product *p, const float *w,
                                 const float *x, size_t first, size_t end,
                                 float *y)
{
    size_t o = first;

    for (; o + ROWS <= end; o += ROWS)
        multiply_rows(p, w + o * p->in, x, ROWS, y + o);
    for (; o < end; o++)
        multiply_rows(p, w + o * p->in, x, 1, y + o);
}

struct forward {
    const struct ddp__dnn_shape *s;
    const struct product *p;
    const float *x, *w;
    float *y;
    size_t shares;
};

static int run_share(void *arg, int i)
{
    const struct forward *f = arg;
    const struct product *p = f->p;
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
static int run_forward(const struct ddp__dnn_shape *s, const struct product *p,
                       const float *x, const float *w, float *y)
{
    int shares = ddp__team_parts(p->in * p->out, SHARE);
    struct forward f = {s, p, x, w, y, (size_t)shares};

    return ddp__team_each(shares, run_share, &f);
}

/* ---- data gradient ------------------------------------------------------ */

/* dx += dy w, for ROWS rows of w. */
DDP__INLINE void add_rows(const float *restrict w, const float *dy, size_t in,
                          size_t len, float *restrict dx)
{
    float a = dy[0], b = dy[1], c = dy[2], d = dy[3];

    for (size_t i = 0; i < len; i++)
        dx[i] += (a * w[i] + b * w[in + i]) +
                 (c * w[2 * in + i] + d * w[3 * in + i]);
}

/* to = from a, or that is added. */
DDP__INLINE void put_scaled(const float *restrict from, float a, size_t len,
                            bool add, float *restrict to)
{
    if (add)
        for (size_t i = 0; i < len; i++)
            to[i] += a * from[i];
    else
        for (size_t i = 0; i < len; i++)
            to[i] = a * from[i];
}

/* So many columns of dx, which begin where w and dx do. */
DDP__CLONES static void multiply_columns(const struct product *p,
                                         const float *w, const float *dy,
                                         size_t len, float *dx)
{
    size_t o = 0;

    for (size_t i = 0; i < p->n; i++)
        memset(dx + i * p->in, 0, len * sizeof(*dx));
    for (; o + ROWS <= p->out; o += ROWS)
        for (size_t i = 0; i < p->n; i++)
            add_rows(w + o * p->in, dy + i * p->out + o, p->in, len,
                     dx + i * p->in);
    for (; o < p->out; o++)
        for (size_t i = 0; i < p->n; i++)
            put_scaled(w + o * p->in, dy[i * p->out + o], len, true,
                       dx + i * p->in);
}

static void run_data_gradient(const struct product *p, float *dx,
                              const float *w, const float *dy)
{
    size_t len = CACHED / p->n;

    for (size_t at = 0; at < p->in; at += len)
        multiply_columns(p, w + at, dy, min_of(len, p->in - at), dx + at);
}

/* ---- weight gradient ---------------------------------------------------- */

/* BLOCK columns of the gradients of `rows` outputs, a constant: the sum over
 * rows of x dy. */
DDP__INLINE void put_block(const struct product *p, const float *x,
                           const float *dy, size_t rows, bool add, float *dw)
{
    parts sum[2 * ROWS], b[2];
    size_t i = add ? 0 : 1;

    for (size_t k = 0; k < 2; k++)
        memcpy(&b[k], x + k * PARTS, sizeof(*b));
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            if (add)
                memcpy(&sum[2 * r + k], dw + r * p->in + k * PARTS,
                       sizeof(*sum));
            else
                sum[2 * r + k] = dy[r] * b[k];
    for (; i < p->n; i++) {
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            memcpy(&b[k], x + i * p->in + k * PARTS, sizeof(*b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (size_t k = 0; k < 2; k++)
                sum[2 * r + k] += dy[i * p->out + r] * b[k];
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            memcpy(dw + r * p->in + k * PARTS, &sum[2 * r + k], sizeof(*sum));
}

/* The gradients of ROWS outputs or one. */
DDP__INLINE void put_rows(const struct product *p, const float *x,
                          const float *dy, size_t rows, bool add, float *dw)
{
    size_t whole = p->in - p->in % BLOCK;

    for (size_t at = 0; at < whole; at += BLOCK)
        put_block(p, x + at, dy, rows, add, dw + at);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < p->n; i++)
            put_scaled(x + i * p->in + whole, dy[i * p->out + r], p->in - whole,
                       add || i > 0, dw + r * p->in + whole);
}

DDP__CLONES static void put_gradient(const struct product *p, const float *x,
                                     const float *dy, bool add, float *dw)
{
    size_t o = 0;

    for (; o + ROWS <= p->out; o += ROWS)
        put_rows(p, x, dy + o, ROWS, add, dw + o * p->in);
    for (; o < p->out; o++)
        put_rows(p, x, dy + o, 1, add, dw + o * p->in);
}

static void run_weight_gradient(const struct ddp__dnn_shape *s,
                                const struct product *p, const float *x,
                                float *dw, const float *dy, bool add)
{
    float *db = dw + p->in * p->out;

    put_gradient(p, x, dy, add, dw);
    for (size_t i = 0; s->conv.bias && i < p->n; i++)
        put_scaled(dy + i * p->out, 1, p->out, add || i > 0, db);
}

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

int ddp__skinny_run(const struct ddp__task *t, const struct ddp__dnn_shape *s,
                    enum ddp__dnn_pass pass, float *x)
{
    struct product p = {(size_t)s->n, (size_t)s->c, (size_t)s->o};
    float *w = t->data[operands[pass][1]], *y = t->data[operands[pass][2]];

    if (!x)
        x = t->data[operands[pass][0]];
    if (pass == DDP__FWD)
        return run_forward(s, &p, x, w, y);
    if (pass == DDP__BWD_X)
        run_data_gradient(&p, x, w, y);
    else
        run_weight_gradient(s, &p, x, w, y, t->accumulate);
    return 0;
}
