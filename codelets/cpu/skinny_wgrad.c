/* skinny_wgrad.c - weight gradients of products with few rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Gradients that do not fit in the caches go past them: two busy cores with AMX
 * need 6.4 and 13.1 ms for those of 4096x4096, 4 and 16 samples, with stores
 * through the caches, and 2.9 and 5.2.  There oneDNN needs 24 and 26.5.
 */
#include "config.h"

#include "skinny_wgrad.h"
#include "store.h"

enum {
    PARTS = DDP__SKINNY_PARTS,
    ROWS = DDP__SKINNY_ROWS,
    BLOCK = DDP__SKINNY_BLOCK
};

typedef ddp__parts parts;

/* What a tap sees of n rows, and their dy of up to ROWS outputs, one after the
 * other. */
struct panel {
    size_t n, len, in;
    bool add, stream; /* to the gradients; past the caches */
    float x[DDP__SKINNY_CACHED], dy[ROWS * DDP__SKINNY_MOST];
};

DDP__SKINNY_INLINE void put_parts(float *to, parts v, bool stream)
{
#ifdef DDP__V16
    if (stream) {
        _mm512_stream_ps(to, (__m512)v);
        return;
    }
#endif
    (void)stream;
    memcpy(to, &v, sizeof(v));
}

/* BLOCK columns of the gradients of `rows` outputs, a constant: the sum over
 * rows of x dy. */
DDP__SKINNY_INLINE void put_block(const struct panel *q, const float *x,
                                  size_t rows, float *dw)
{
    parts sum[2 * ROWS], b[2];

#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            if (q->add)
                memcpy(&sum[2 * r + k], dw + r * q->in + k * PARTS,
                       sizeof(*sum));
            else
                sum[2 * r + k] = (parts){0};
    for (size_t i = 0; i < q->n; i++) {
        memcpy(b, x + i * q->len, sizeof(b));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (size_t k = 0; k < 2; k++)
                sum[2 * r + k] += q->dy[i * rows + r] * b[k];
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t k = 0; k < 2; k++)
            put_parts(dw + r * q->in + k * PARTS, sum[2 * r + k], q->stream);
}

/* The panel's columns of the gradients of ROWS outputs or one. */
DDP__SKINNY_INLINE void put_rows(const struct ddp__skinny_product *p,
                                 const struct ddp__skinny_tap *t,
                                 const float *dy, size_t rows, struct panel *q,
                                 float *dw)
{
    size_t whole = q->len - q->len % BLOCK;

    for (size_t i = 0; i < q->n; i++)
        for (size_t r = 0; r < rows; r++)
            q->dy[i * rows + r] = dy[t->row[i] * p->out + r];
    for (size_t at = 0; at < whole; at += BLOCK)
        put_block(q, q->x + at, rows, dw + at);
    for (size_t r = 0; r < rows && whole < q->len; r++) {
        float *to = dw + r * p->in + whole;

        if (!q->add)
            memset(to, 0, (q->len - whole) * sizeof(*to));
        for (size_t i = 0; i < q->n; i++)
            ddp__skinny_add(q->x + i * q->len + whole, q->dy[i * rows + r],
                            q->len - whole, to);
    }
}

/* Whether gradients at dw go past the caches: there are more of them than fit.
 */
static bool streams(const struct ddp__skinny_product *p, const float *dw)
{
    return p->in % PARTS == 0 && p->c % PARTS == 0 &&
           (uintptr_t)dw % sizeof(parts) == 0 &&
           ddp__streams(p->in * p->out, false);
}

/* So many columns of the gradients of all outputs under a tap. */
DDP__SKINNY static void put_columns(const struct ddp__skinny_product *p,
                                    const struct ddp__skinny_tap *t,
                                    const float *x, const float *dy, size_t len,
                                    bool add, float *dw)
{
    struct panel q;
    size_t o = 0;

    q.n = t->n;
    q.len = len;
    q.in = p->in;
    q.add = add;
    q.stream = streams(p, dw);
    for (size_t i = 0; i < t->n; i++)
        memcpy(q.x + i * len, x + t->at[i], len * sizeof(*x));
    for (; o + ROWS <= p->out; o += ROWS)
        put_rows(p, t, dy + o, ROWS, &q, dw + o * p->in);
    for (; o < p->out; o++)
        put_rows(p, t, dy + o, 1, &q, dw + o * p->in);
    if (q.stream)
        ddp__store_end();
}

DDP__SKINNY static void sum_rows(const float *dy, size_t rows, size_t o,
                                 bool add, float *db)
{
    if (!add)
        memset(db, 0, o * sizeof(*db));
    for (size_t i = 0; i < rows; i++)
        ddp__skinny_add(dy + i * o, 1, o, db);
}

void ddp__skinny_wgrad(const struct ddp__skinny_product *p, const float *x,
                       const float *dy, bool bias, bool add, float *dw)
{
    for (size_t tap = 0; tap < p->x->taps; tap++) {
        const struct ddp__skinny_tap *t = &p->x->tap[tap];
        size_t len = ddp__skinny_piece(t);

        for (size_t at = 0; at < p->c; at += len)
            put_columns(p, t, x + at, dy, len < p->c - at ? len : p->c - at,
                        add, dw + tap * p->c + at);
    }
    if (bias)
        sum_rows(dy, p->n, p->out, add, dw + p->in * p->out);
}
