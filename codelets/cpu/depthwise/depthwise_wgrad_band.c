/* depthwise_wgrad_band.c - products of one or two rows of a depthwise 3x3 layer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "depthwise_wgrad_band.h"

#ifdef DDP__X86
enum { SIDE = 3, TAPS = SIDE * SIDE, LANES = 16, LINE = 64 };

DDP__V16_INLINE void fetch(struct ddp__dw_next *n)
{
    for (size_t i = 0; i < n->ahead; i += LINE)
        _mm_prefetch(n->at + i, _MM_HINT_T1);
    n->at += n->ahead;
}

DDP__V16_INLINE __m512 load(bool b, __mmask16 mask, const char *p)
{
    if (!b)
        return _mm512_maskz_loadu_ps(mask, p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16));
}

/* Constants of the loops, and the norm that x goes through, if it does. */
struct kind {
    bool b, norm;
    int rows, stride;
    struct ddp__bn_clamp_v16 clamp;
    __mmask16 inside[DDP__DW_LINES];
};

/* sum += the products of a pixel of each row of dy with the pixels of x[line]
 * under its taps, whose columns are `pitch` apart from at[line] on. */
DDP__V16_INLINE void add_column(const struct kind *k, __mmask16 mask,
                                const char *const *at, size_t pitch, int first,
                                int end, const char *const *dy, size_t dy_at,
                                __m512 *sum)
{
    __m512 d[2];

#pragma GCC unroll 2
    for (int r = 0; r < k->rows; r++)
        d[r] = load(k->b, mask, dy[r] + dy_at);
#pragma GCC unroll 4
    for (int l = 0; l < (k->rows - 1) * k->stride + SIDE; l++)
#pragma GCC unroll 3
        for (int j = 0; j < SIDE; j++) {
            __m512 v;

            if (j < first || j >= end)
                continue;
            v = load(k->b, mask, at[l] + (size_t)j * pitch);
            if (k->norm)
                v = ddp__bn_clamp_v16(&k->clamp, v, k->inside[l]);
#pragma GCC unroll 2
            for (int r = 0; r < k->rows; r++) {
                int i = l - r * k->stride;

                if (i >= 0 && i < SIDE)
                    sum[i * SIDE + j] =
                        _mm512_fmadd_ps(d[r], v, sum[i * SIDE + j]);
            }
        }
}

/* A pixel at an edge, some of whose taps see nothing. */
DDP__V16_INLINE void add_edge(const struct kind *k,
                              const struct ddp__dw_band *n, int i, __m512 *sum)
{
    int column = i * k->stride - n->left;
    int first = column < 0 ? -column : 0;
    int end = n->w - column < SIDE ? n->w - column : SIDE;
    const char *at[DDP__DW_LINES];

    for (int l = 0; l < (k->rows - 1) * k->stride + SIDE; l++)
        at[l] = n->x[l] + (ptrdiff_t)column * (ptrdiff_t)n->pitch;
    add_column(k, n->mask, at, n->pitch, first, end, n->dy,
               (size_t)i * n->pitch, sum);
}

DDP__V16_INLINE void add_edges(const struct kind *k,
                               const struct ddp__dw_band *n, int from, int to,
                               __m512 *sum)
{
    for (int i = from; i < to; i++)
        add_edge(k, n, i, sum);
}

/* Pixels all of whose taps are inside of the image's width. */
DDP__V16_INLINE void add_middle(const struct kind *k, struct ddp__dw_band *n,
                                int from, int to, __m512 *sum)
{
    int column = from * k->stride - n->left;
    struct ddp__dw_next next = n->next[0], next2 = n->next[1];
    const char *at[DDP__DW_LINES];

#pragma GCC unroll 4
    for (int l = 0; l < (k->rows - 1) * k->stride + SIDE; l++)
        at[l] = n->x[l] + (ptrdiff_t)column * (ptrdiff_t)n->pitch;
    for (int i = from; i < to; i++) {
        fetch(&next);
        fetch(&next2);
        add_column(k, n->mask, at, n->pitch, 0, SIDE, n->dy,
                   (size_t)i * n->pitch, sum);
#pragma GCC unroll 4
        for (int l = 0; l < (k->rows - 1) * k->stride + SIDE; l++)
            at[l] += (size_t)k->stride * n->pitch;
    }
    n->next[0] = next;
    n->next[1] = next2;
}

static int clamp(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* b, norm, rows and stride are constants: every index of sum is known when this
 * is compiled. */
DDP__V16_INLINE void add_band(bool b, bool norm, int rows, int stride,
                              struct ddp__dw_band *n, float *to)
{
    int begin = clamp((n->left + stride - 1) / stride, n->ow);
    int end = clamp((n->w - SIDE + n->left + stride) / stride, n->ow);
    struct kind k = {.b = b, .norm = norm, .rows = rows, .stride = stride};
    __m512 sum[TAPS];

    if (norm) {
        k.clamp = ddp__bn_clamp_at(n->norm, n->channel);
#pragma GCC unroll 4
        for (int l = 0; l < DDP__DW_LINES; l++)
            k.inside[l] = n->inside[l];
    }
    end = end < begin ? begin : end;
#pragma GCC unroll 9
    for (int i = 0; i < TAPS; i++)
        sum[i] = _mm512_loadu_ps(to + i * LANES);
    add_edges(&k, n, 0, begin, sum);
    add_middle(&k, n, begin, end, sum);
    add_edges(&k, n, end, n->ow, sum);
#pragma GCC unroll 9
    for (int i = 0; i < TAPS; i++)
        _mm512_storeu_ps(to + i * LANES, sum[i]);
}

/* An instance for each case. */
#define X(name, b, norm, rows, stride)                                         \
    DDP__V16 static void name(struct ddp__dw_band *n, float *to)               \
    {                                                                          \
        add_band(b, norm, rows, stride, n, to);                                \
    }
X(pair_f32, false, false, 2, 1)
X(row_f32, false, false, 1, 1)
X(skip_f32, false, false, 1, 2)
X(pair_bf16, true, false, 2, 1)
X(row_bf16, true, false, 1, 1)
X(skip_bf16, true, false, 1, 2)
X(pair_norm, false, true, 2, 1)
X(row_norm, false, true, 1, 1)
X(skip_norm, false, true, 1, 2)
#undef X

void ddp__dw_band_add(bool b, int rows, int stride, struct ddp__dw_band *n,
                      float *to)
{
    if (stride == 2)
        (n->norm ? skip_norm : b ? skip_bf16 : skip_f32)(n, to);
    else if (rows == 2)
        (n->norm ? pair_norm : b ? pair_bf16 : pair_f32)(n, to);
    else
        (n->norm ? row_norm : b ? row_bf16 : row_f32)(n, to);
}

#endif
