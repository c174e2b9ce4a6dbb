/* pool_mean_v16.c - mean over windows by AVX-512, to the bits of pool.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Milliseconds as in pool_max_v16.c:
 *
 *     35x35x288 3x3     0.85 0.50 3.10 0.67  0.75 0.39 1.10 0.38
 *     56x56x128 2x2/2   0.30 0.40 0.62 0.36  0.38 0.26 0.28 0.19
 *     7x7x2048 of all   0.05 0.07 0.20 0.08  0.05 0.05 0.11 0.04
 *
 * The last two forward, in f32, are as fast as a copy of as many bytes.  They
 * read half a kilobyte of a pixel at a time; to fetch nothing, less far ahead
 * or to the second level only, and results through the caches take up to 40 %
 * longer.  In bf16 oneDNN's gradients of windows that overlap are rounded to
 * bf16 term by term.
 */
#include "config.h"

#include "pool_mean_v16.h"
#include "pool_unit.h"

#ifdef DDP__X86

/* Rows of means at a time, which share sums of rows of pixels; units of means
 * that share none, to read whole half kilobytes. */
enum { ROWS = 4, MEANS = 4 };

/* A pixel of each of ROWS rows of outputs. */
struct column {
    int begin, end; /* columns of the windows */
    float factor[ROWS];
};

/* ROWS rows of outputs of one image.  Bits of in[] are outputs in whose windows
 * a row of x is. */
struct band {
    size_t c, width, out;          /* of a row of x, of outputs: values */
    int columns, rows, begin, end; /* rows: of outputs; begin, end: of x */
    const struct column *column;
    const uint8_t *in;
    const void *x;
    void *y;
    bool shared; /* windows overlap; if not, rows is 1 */
};

/* The sum of a row's pixels. */
DDP__UNIT_INLINE void sum_row(const void *x, size_t at, int pixels, size_t c,
                              struct ddp__unit k, v16 sum[2])
{
    ddp__unit_load(sum, x, at, k);
    while (--pixels > 0) {
        v16 v[2];

        ddp__unit_load(v, x, at += c, k);
        sum[0] = _mm512_add_ps(sum[0], v[0]);
        sum[1] = _mm512_add_ps(sum[1], v[1]);
    }
}

DDP__UNIT_INLINE void put_mean(void *y, size_t at, const v16 total[2],
                               float factor, struct ddp__unit k)
{
    v16 f = _mm512_set1_ps(factor);
    v16 v[2] = {_mm512_mul_ps(total[0], f), _mm512_mul_ps(total[1], f)};

    ddp__unit_put(y, at, v, k, false);
}

/* Channels c and the next ones of the outputs of column i. */
DDP__UNIT_INLINE void mean_block(const struct band *l, int i, size_t c,
                                 struct ddp__unit k)
{
    const struct column *o = &l->column[i];
    int pixels = o->end - o->begin;
    size_t at = (size_t)l->begin * l->width + (size_t)o->begin * l->c + c;
    size_t to = (size_t)i * l->c + c;
    v16 total[ROWS][2], sum[2];

#pragma GCC unroll 4
    for (int t = 0; t < ROWS; t++)
        total[t][0] = total[t][1] = _mm512_setzero_ps();
    for (int p = l->begin; pixels > 0 && p < l->end; p++, at += l->width) {
        sum_row(l->x, at, pixels, l->c, k, sum);
#pragma GCC unroll 4
        for (int t = 0; t < ROWS; t++)
            if (l->in[p] & 1u << t) {
                total[t][0] = _mm512_add_ps(total[t][0], sum[0]);
                total[t][1] = _mm512_add_ps(total[t][1], sum[1]);
            }
    }
#pragma GCC unroll 4
    for (int t = 0; t < ROWS; t++)
        if (t < l->rows)
            put_mean(l->y, (size_t)t * l->out + to, total[t], o->factor[t], k);
}

/* Adds the sums of a row's pixels. */
DDP__UNIT_INLINE void add_row(const void *x, size_t at, int pixels, size_t c,
                              int units, struct ddp__unit k,
                              v16 total[MEANS][2])
{
    v16 sum[MEANS][2];

#pragma GCC unroll 4
    for (int u = 0; u < units; u++)
        ddp__unit_load(sum[u], x, at + (size_t)u * DDP__UNIT, k);
    while (--pixels > 0) {
        at += c;
#pragma GCC unroll 4
        for (int u = 0; u < units; u++) {
            v16 v[2];

            ddp__unit_load(v, x, at + (size_t)u * DDP__UNIT, k);
            sum[u][0] = _mm512_add_ps(sum[u][0], v[0]);
            sum[u][1] = _mm512_add_ps(sum[u][1], v[1]);
        }
    }
#pragma GCC unroll 4
    for (int u = 0; u < units; u++) {
        total[u][0] = _mm512_add_ps(total[u][0], sum[u][0]);
        total[u][1] = _mm512_add_ps(total[u][1], sum[u][1]);
    }
}

/* The same of one output, all of whose rows are in the window. */
DDP__UNIT_INLINE void mean_alone(const struct band *l, int i, size_t c,
                                 int units, struct ddp__unit k)
{
    const struct column *o = &l->column[i];
    int pixels = o->end - o->begin;
    size_t at = (size_t)l->begin * l->width + (size_t)o->begin * l->c + c;
    size_t to = (size_t)i * l->c + c;
    v16 total[MEANS][2];

#pragma GCC unroll 4
    for (int u = 0; u < units; u++)
        total[u][0] = total[u][1] = _mm512_setzero_ps();
    for (int p = l->begin; pixels > 0 && p < l->end; p++, at += l->width)
        add_row(l->x, at, pixels, l->c, units, k, total);
#pragma GCC unroll 4
    for (int u = 0; u < units; u++)
        put_mean(l->y, to + (size_t)u * DDP__UNIT, total[u], o->factor[0], k);
}

DDP__UNIT_INLINE void mean_units(const struct band *l, int i, size_t c,
                                 int units, struct ddp__unit k)
{
    if (!l->shared)
        mean_alone(l, i, c, units, k);
    else
        for (int u = 0; u < units; u++)
            mean_block(l, i, c + (size_t)u * DDP__UNIT, k);
}

DDP__UNIT_INLINE void mean_rows(const struct band *l, bool b, bool stream)
{
    for (int i = 0; i < l->columns; i++)
        DDP__POOL_UNITS(MEANS, l->c, b, stream, mean_units, l, i);
}

DDP__POOL_KINDS(mean_rows, struct band)

/* The band of outputs that begins in row oy. */
static struct band band_at(const struct ddp__pooling *g,
                           const struct ddp__pool *p, int oy,
                           struct column *column, uint8_t *in)
{
    struct band l = {.c = g->c,
                     .width = (size_t)g->h.in * g->c,
                     .out = (size_t)g->h.out * g->c,
                     .columns = g->h.out,
                     .begin = g->v.in,
                     .column = column,
                     .in = in,
                     .shared = g->v.stride < g->v.size && g->v.out > 1};
    int most = l.shared ? ROWS : 1;

    memset(in, 0, (size_t)g->v.in);
    for (; l.rows < most && oy + l.rows < g->v.out; l.rows++) {
        struct ddp__window r = ddp__pool_window(&g->v, oy + l.rows);

        for (int i = r.begin; i < r.end; i++)
            in[i] |= (uint8_t)(1 << l.rows);
        if (r.begin < r.end) {
            l.begin = r.begin < l.begin ? r.begin : l.begin;
            l.end = r.end;
        }
        for (int i = 0; i < g->h.out; i++) {
            struct ddp__window q = ddp__pool_window(&g->h, i);

            column[i].begin = q.begin;
            column[i].end = q.end;
            column[i].factor[l.rows] = ddp__pool_factor(p, r, q);
        }
    }
    return l;
}

int ddp__mean_pool_v16(const struct ddp__pooling *g, const struct ddp__pool *p,
                       int n, const void *x, void *y)
{
    size_t image = (size_t)g->v.in * (size_t)g->h.in * g->c;
    size_t outs = (size_t)g->v.out * (size_t)g->h.out * g->c;
    bool stream = ddp__pool_streams(g, y, (size_t)n * outs);
    struct column *column =
        ddp__scratch((size_t)g->h.out * sizeof(*column) + (size_t)g->v.in);
    uint8_t *in = (uint8_t *)(column + g->h.out);

    if (!column)
        return DDP_ENOMEM;
    for (size_t i = 0; i < (size_t)n; i++)
        for (int oy = 0; oy < g->v.out;) {
            struct band l = band_at(g, p, oy, column, in);

            l.x = ddp__at(x, i * image, g->b);
            l.y = ddp__to(y, i * outs + (size_t)oy * l.out, g->b);
            DDP__POOL_RUN(mean_rows, g->b, stream, &l);
            oy += l.rows;
        }
    ddp__store_end();
    return 0;
}

#endif
