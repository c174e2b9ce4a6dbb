/* pool_max_v16.c - maximum over windows by AVX-512, to the bits of pool.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core (AVX-512 with bf16) under load, 8 images, from memory
 * (tests/kernelbench pool), milliseconds of oneDNN 2.6 and here; f32 forward,
 * backward (pool_bwd_v16.c), and the same in bf16:
 *
 *     112x112x64 3x3/2  1.87 0.94 1.81 0.84  1.17 0.57 0.98 0.57
 *     224x224x64 2x2/2  4.56 2.97 6.13 3.25  2.68 1.70 3.42 2.03
 *     28x28x512 2x2/2   0.58 0.33 1.05 0.37  0.51 0.18 0.64 0.23
 *     35x35x288 3x3/2   0.78 0.35 1.06 0.32  0.47 0.25 0.75 0.21
 *     57x57x75 3x3/2    0.61 0.41 0.60 0.54  0.28 0.30 0.46 0.31
 *
 * From caches (-w) this and pool_mean_v16.c are 0.8 to 1.3 times as fast
 * forward, 0.6 to 2.3 times backward, where results that do not fit into the
 * second level go past the caches here.  oneDNN's positions of maxima have a
 * form of their own, which no GPU reads.
 */
#include "config.h"

#include <math.h>

#include "pool_max_v16.h"
#include "pool_unit.h"

#ifdef DDP__X86

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
            __mmask16 wins =
                exact ? _mm512_cmp_ps_mask(v[i], m->best[i], _CMP_NLE_UQ)
                      : _mm512_cmp_ps_mask(v[i], m->best[i], _CMP_GT_OQ);

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

#endif
