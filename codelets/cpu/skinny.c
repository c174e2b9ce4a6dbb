/* skinny.c - dense layers of few samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * So few samples use a weight only a few times, and to pack it for oneDNN
 * (pack.c), as after each update, costs more than the product.  These loops
 * read weights and write their gradients where they are, and no copy takes
 * memory: 0.8 GB for the first dense layer of VGG-16.
 *
 * One Zen 5 core, 768 to 512, weights changed before; microseconds of forward
 * and both gradients by oneDNN 2.6, and in this way:
 *
 *     1 sample      111 136 111    15  14  14
 *     4 samples     117 140 117    57  48  37
 *     8 samples     122 145 124   113  94  78
 *
 * Errors relative to f64 were 5.0e-7, 3.9e-7, 4.0e-8; they are 1.4e-7, 2.1e-7,
 * 4.0e-8.
 */
#include "config.h"

#include "cpu.h"
#include "skinny.h"
#include "vmath.h"

enum {
    MOST = 8,   /* samples */
    PARTS = 16, /* of a sum, added in turn */
    ROWS = 4,   /* of weights that are read at a time */
    PIECE = 512 /* of a row whose gradient is in the first-level cache */
};

typedef float parts __attribute__((vector_size(PARTS * sizeof(float))));

bool ddp__skinny_fits(const struct ddp__dnn_shape *s)
{
    return s->dense && s->type == DDP_F32 && s->n <= MOST && !s->sum;
}

/* ---- forward ------------------------------------------------------------ */

DDP__INLINE float add_parts(parts p)
{
    float sum = 0;

    for (size_t i = 0; i < PARTS; i++)
        sum += p[i];
    return sum;
}

/* dot = w x, for some rows of w; a constant number of them. */
DDP__INLINE void multiply_rows(const float *w, const float *x, size_t len,
                               size_t rows, float *dot)
{
    parts sum[ROWS] = {{0}}, a, b;
    size_t whole = len - len % PARTS;

    for (size_t i = 0; i < whole; i += PARTS) {
        memcpy(&b, x + i, sizeof(b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
            memcpy(&a, w + r * len + i, sizeof(a));
            sum[r] += a * b;
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++) {
        dot[r] = add_parts(sum[r]);
        for (size_t i = whole; i < len; i++)
            dot[r] += w[r * len + i] * x[i];
    }
}

DDP__CLONES static void multiply_some(const float *w, const float *x,
                                      size_t len, size_t rows, float *y)
{
    if (rows == ROWS)
        multiply_rows(w, x, len, ROWS, y);
    else
        for (size_t r = 0; r < rows; r++)
            multiply_rows(w + r * len, x, len, 1, y + r);
}

/* Rows of weights come from memory once, for all samples. */
static void run_forward(const struct ddp__task *t,
                        const struct ddp__dnn_shape *s)
{
    size_t in = (size_t)s->c, out = (size_t)s->o, n = (size_t)t->n, rows;
    const float *w = t->data[DDP__DENSE_FWD_W], *x = t->data[DDP__DENSE_FWD_X];
    const float *bias = s->conv.bias ? w + in * out : NULL;
    float *y = t->data[DDP__DENSE_FWD_Y];

    for (size_t o = 0; o < out; o += rows) {
        rows = out - o < ROWS ? out - o : ROWS;
        for (size_t i = 0; i < n; i++)
            multiply_some(w + o * in, x + i * in, in, rows, y + i * out + o);
    }
    for (size_t i = 0; i < n * out; i++)
        y[i] = ddp__act(y[i] + (bias ? bias[i % out] : 0), s->conv.act);
}

/* ---- gradients ---------------------------------------------------------- */

/* dx += dy w, for ROWS rows of w. */
DDP__CLONES static void add_rows(const float *restrict w, const float *dy,
                                 size_t len, float *restrict dx)
{
    float a = dy[0], b = dy[1], c = dy[2], d = dy[3];

    for (size_t i = 0; i < len; i++)
        dx[i] += (a * w[i] + b * w[len + i]) +
                 (c * w[2 * len + i] + d * w[3 * len + i]);
}

/* to = from a, or that is added. */
DDP__CLONES static void put_scaled(const float *restrict from, float a,
                                   size_t len, bool add, float *restrict to)
{
    if (add)
        for (size_t i = 0; i < len; i++)
            to[i] += a * from[i];
    else
        for (size_t i = 0; i < len; i++)
            to[i] = a * from[i];
}

static void run_data_gradient(const struct ddp__task *t,
                              const struct ddp__dnn_shape *s)
{
    size_t in = (size_t)s->c, out = (size_t)s->o, whole = out - out % ROWS;
    size_t n = (size_t)t->n;
    const float *w = t->data[DDP__DENSE_BWD_X_W];
    const float *dy = t->data[DDP__DENSE_BWD_X_DY];
    float *dx = t->data[DDP__DENSE_BWD_X_DX];

    memset(dx, 0, n * in * sizeof(*dx));
    for (size_t o = 0; o < whole; o += ROWS)
        for (size_t i = 0; i < n; i++)
            add_rows(w + o * in, dy + i * out + o, in, dx + i * in);
    for (size_t o = whole; o < out; o++)
        for (size_t i = 0; i < n; i++)
            put_scaled(w + o * in, dy[i * out + o], in, true, dx + i * in);
}

/* dw of an output: the sum over samples of x dy. */
static void put_row(const struct ddp__task *t, const float *x, const float *dy,
                    size_t in, size_t out, float *dw)
{
    for (size_t at = 0; at < in; at += PIECE)
        for (size_t i = 0; i < (size_t)t->n; i++)
            put_scaled(x + i * in + at, dy[i * out],
                       in - at < PIECE ? in - at : PIECE,
                       t->accumulate || i > 0, dw + at);
}

static void run_weight_gradient(const struct ddp__task *t,
                                const struct ddp__dnn_shape *s)
{
    size_t in = (size_t)s->c, out = (size_t)s->o;
    const float *x = t->data[DDP__DENSE_BWD_W_X];
    const float *dy = t->data[DDP__DENSE_BWD_W_DY];
    float *dw = t->data[DDP__DENSE_BWD_W_G], *db = dw + in * out;

    for (size_t o = 0; o < out; o++)
        put_row(t, x, dy + o, in, out, dw + o * in);
    for (size_t i = 0; s->conv.bias && i < (size_t)t->n; i++)
        put_scaled(dy + i * out, 1, out, t->accumulate || i > 0, db);
}

int ddp__skinny_run(const struct ddp__task *t, const struct ddp__dnn_shape *s,
                    enum ddp__dnn_pass pass)
{
    if (pass == DDP__FWD)
        run_forward(t, s);
    else if (pass == DDP__BWD_X)
        run_data_gradient(t, s);
    else
        run_weight_gradient(t, s);
    return 0;
}
