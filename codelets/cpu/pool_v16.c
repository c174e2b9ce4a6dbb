/* pool_v16.c - maximum and mean over windows by AVX-512, to the bits of pool.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core (AVX-512 with bf16) under load, 8 images, from memory
 * (tests/kernelbench pool), milliseconds of oneDNN 2.6 and here; f32 forward,
 * backward, and the same in bf16:
 *
 *     112x112x64 max 3x3/2  1.87 0.94 1.81 0.84  1.17 0.57 0.98 0.57
 *     224x224x64 max 2x2/2  4.56 2.97 6.13 3.25  2.68 1.70 3.42 2.03
 *     28x28x512 max 2x2/2   0.58 0.33 1.05 0.37  0.51 0.18 0.64 0.23
 *     35x35x288 max 3x3/2   0.78 0.35 1.06 0.32  0.47 0.25 0.75 0.21
 *     57x57x75 max 3x3/2    0.61 0.41 0.60 0.54  0.28 0.30 0.46 0.31
 *     35x35x288 mean 3x3    0.85 0.50 3.10 0.67  0.75 0.39 1.10 0.38
 *     56x56x128 mean 2x2/2  0.30 0.40 0.62 0.36  0.38 0.26 0.28 0.19
 *     7x7x2048 mean of all  0.05 0.07 0.20 0.08  0.05 0.05 0.11 0.04
 *
 * The last two forward, in f32, are as fast as a copy of as many bytes.  They
 * read half a kilobyte of a pixel at a time; to fetch nothing, less far ahead
 * or to the second level only, and results through the caches take up to 40 %
 * longer.
 *
 * From caches (-w) it is 0.8 to 1.3 times as fast forward, 0.6 to 2.3 times
 * backward, where results that do not fit into the second level go past the
 * caches here.  oneDNN's positions of maxima have a form of their own, which no
 * GPU reads, and in bf16 its gradients of windows that overlap are rounded to
 * bf16 term by term.
 */
#include "config.h"

#include <math.h>

#include "pool_unit.h"
#include "pool_v16.h"

#ifdef DDP__UNIT_V16

/* Rows of means at a time, which share sums of rows of pixels; units of means
 * that share none, to read whole half kilobytes. */
enum { ROWS = 4, MEANS = 4 };

/* ---- maximum ------------------------------------------------------------ */

/* Positions as bytes. */
DDP__UNIT_INLINE void put_positions(uint8_t *p, const __m512i at[2],
                                    struct ddp__unit k)
{
    __m256i bytes;

    if (k.b)
        bytes = _mm512_cvtepi16_epi8(
            _mm512_or_si512(at[0], _mm512_slli_epi32(at[1], 16)));
    else
        bytes = _mm256_set_m128i(_mm512_cvtepi32_epi8(at[1]),
                                 _mm512_cvtepi32_epi8(at[0]));
    if (k.whole)
        _mm256_storeu_si256((void *)p, bytes);
    else
        _mm256_mask_storeu_epi8(p, k.mask, bytes);
}

/* Maxima of a block's channels. */
struct most {
    v16 best[2 * DDP__POOL_MOST];
    __m512i at[2 * DDP__POOL_MOST];
};

/* Of values from c on under the taps; true: some may be NaN, and if not `exact`
 * the maxima are wrong.  A NaN remains the maximum, and makes sums NaN. */
DDP__UNIT_INLINE bool find_most(struct most *m, const struct ddp__pool_line *l,
                                const struct ddp__pool_tap *tap,
                                const struct ddp__pool_tap *end, size_t c,
                                int units, struct ddp__unit k, bool exact)
{
    v16 sum[2 * DDP__POOL_MOST];
    __mmask16 bad = 0;

#pragma GCC unroll 4
    for (int i = 0; i < 2 * units; i++) {
        m->best[i] = _mm512_set1_ps(-INFINITY);
        m->at[i] = _mm512_set1_epi32(tap < end ? tap->position : 0);
        sum[i] = _mm512_setzero_ps();
    }
    for (; tap < end; tap++) {
        __m512i here = _mm512_set1_epi32(tap->position);
        v16 v[2 * DDP__POOL_MOST];

#pragma GCC unroll 2
        for (int u = 0; u < units; u++)
            ddp__unit_load(v + 2 * u, l->from,
                           tap->at + c + (size_t)u * DDP__UNIT, k);
#pragma GCC unroll 4
        for (int i = 0; i < 2 * units; i++) {
            __mmask16 wins = _mm512_cmp_ps_mask(
                v[i], m->best[i], exact ? _CMP_NLE_UQ : _CMP_GT_OQ);

            if (exact)
                wins &= _mm512_cmp_ps_mask(m->best[i], m->best[i], _CMP_ORD_Q);
            m->best[i] = exact ? _mm512_mask_mov_ps(m->best[i], wins, v[i])
                               : _mm512_max_ps(v[i], m->best[i]);
            m->at[i] = _mm512_mask_mov_epi32(m->at[i], wins, here);
            sum[i] = _mm512_add_ps(sum[i], v[i]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 2 * units; i++)
        bad |= _mm512_cmp_ps_mask(sum[i], sum[i], _CMP_UNORD_Q);
    return bad;
}

/* Channels c and the next ones of result i. */
DDP__UNIT_INLINE void max_units(const struct ddp__pool_line *l, int i,
                                const struct ddp__pool_tap *tap,
                                const struct ddp__pool_tap *end, size_t c,
                                int units, struct ddp__unit k)
{
    size_t to = (size_t)i * l->c + c;
    struct most m;

    if (find_most(&m, l, tap, end, c, units, k, false))
        find_most(&m, l, tap, end, c, units, k, true);
#pragma GCC unroll 2
    for (int u = 0; u < units; u++, to += DDP__UNIT) {
        ddp__unit_put(l->to, to, m.best + 2 * u, k, true);
        put_positions(l->index + to, m.at + 2 * u, k);
    }
}

DDP__UNIT_INLINE void max_row(const struct ddp__pool_line *l, bool b,
                              bool stream)
{
    const struct ddp__pool_tap *tap = l->row->tap, *end;

    for (int i = 0; i < l->width; i++, tap = end) {
        end = l->row->tap + l->row->end[i];
        DDP__POOL_UNITS(DDP__POOL_MOST, l->c, b, stream, max_units, l, i, tap,
                        end);
    }
}

DDP__POOL_KINDS(max_row, struct ddp__pool_line)

/* The windows of a row of outputs, relative to their first row of pixels. */
static void list_windows(const struct ddp__pooling *g, struct ddp__window r,
                         struct ddp__pool_list *row)
{
    int taps = 0;

    for (int i = 0; i < g->h.out; i++) {
        struct ddp__window q = ddp__pool_window(&g->h, i);

        for (int p = r.begin; p < r.end; p++)
            for (int j = q.begin; j < q.end; j++)
                row->tap[taps++] = (struct ddp__pool_tap){
                    .at =
                        ((size_t)(p - r.begin) * (size_t)g->h.in + (size_t)j) *
                        g->c,
                    .position = (p - r.start) * g->h.size + j - q.start};
        row->end[i] = taps;
    }
}

static bool same_shape(struct ddp__window a, struct ddp__window b)
{
    return a.begin - a.start == b.begin - b.start &&
           a.end - a.start == b.end - b.start;
}

int ddp__max_pool_v16(const struct ddp__pooling *g, int n, const void *x,
                      void *y, uint8_t *index)
{
    size_t row = (size_t)g->h.in * g->c, image = (size_t)g->v.in * row;
    size_t step = (size_t)g->h.out * g->c, rows = (size_t)g->v.out;
    bool stream = ddp__pool_streams(g, y, (size_t)n * rows * step);
    void *room =
        ddp__scratch(ddp__pool_list_size(g->h.out, g->v.size * g->h.size));
    struct ddp__window last = {.begin = 0};
    struct ddp__pool_list list;

    if (!room)
        return DDP_ENOMEM;
    list = ddp__pool_list_in(room, g->h.out);
    for (size_t i = 0; i < (size_t)n * rows; i++) {
        struct ddp__window r = ddp__pool_window(&g->v, (int)(i % rows));
        size_t from = i / rows * image + (size_t)r.begin * row;
        struct ddp__pool_line l = {&list,
                                   g->h.out,
                                   g->c,
                                   ddp__at(x, from, g->b),
                                   ddp__to(y, i * step, g->b),
                                   index + i * step};

        if (i == 0 || !same_shape(r, last))
            list_windows(g, r, &list);
        last = r;
        DDP__POOL_RUN(max_row, g->b, stream, &l);
    }
    ddp__store_end();
    return 0;
}

/* ---- mean --------------------------------------------------------------- */

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

#else

int ddp__max_pool_v16(const struct ddp__pooling *g, int n, const void *x,
                      void *y, uint8_t *index)
{
    (void)g, (void)n, (void)x, (void)y, (void)index;
    return DDP_ENODEV;
}

int ddp__mean_pool_v16(const struct ddp__pooling *g, const struct ddp__pool *p,
                       int n, const void *x, void *y)
{
    (void)g, (void)p, (void)n, (void)x, (void)y;
    return DDP_ENODEV;
}

#endif
