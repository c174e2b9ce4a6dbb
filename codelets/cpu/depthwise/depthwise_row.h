/* depthwise_row.h - the products of a row of a depthwise filter, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Registers hold the sums of several pixels of a row and a row of taps; each
 * pixel that is read is multiplied by all taps that need it.
 *
 * Pixels are words of 32 bits, LANES in a vector: one channel of f32, or two of
 * bf16, of which the even one is the lower half.  A vector of words then has
 * one vector of sums, or two, of the even and the odd channels; and so has a
 * tap.
 */
#ifndef DDP_DEPTHWISE_ROW_H
#define DDP_DEPTHWISE_ROW_H

#include "cpu/norm/bn_clamp_v16.h"
#include "cpu/vector/v16.h"

#ifdef DDP__X86
#include "cpu/vector/vec16.h"

enum { DDP__DEPTHWISE_TAPS = 5 /* of a row, at most */ };

/* What a batch norm has to do with them. */
enum ddp__depthwise_norm_use {
    DDP__DEPTHWISE_PLAIN, /* nothing */
    DDP__DEPTHWISE_READS, /* pixels that are read are normalised first */
    DDP__DEPTHWISE_SUMS,  /* its backward pass reads the results, for sums */
    DDP__DEPTHWISE_DX     /* ... and its dx are the results */
};

/* Constants of the loops.  Pixel j of those that are read and pixel i of the
 * results have tap j - i stride in common; or, of the data gradient of stride
 * 2 (spreads), whose first result has the filter's even taps, tap i - 2 (j -
 * before). */
struct ddp__depthwise_kind {
    int size, stride;
    bool spreads, b; /* b: bf16 */
    enum ddp__depthwise_norm_use norm;
    enum ddp_act act; /* of a norm that reads results; see there */
    int pixels;       /* results at a time */
};

DDP__V16_INLINE int ddp__depthwise_before(const struct ddp__depthwise_kind k)
{
    return k.spreads ? (k.size - 1) / 2 : 0;
}

/* Pixels that are read. */
DDP__V16_INLINE int ddp__depthwise_reach(const struct ddp__depthwise_kind k)
{
    return k.spreads ? k.pixels / 2 + ddp__depthwise_before(k)
                     : (k.pixels - 1) * k.stride + k.size;
}

DDP__V16_INLINE int ddp__depthwise_tap(const struct ddp__depthwise_kind k,
                                       int j, int i)
{
    return k.spreads ? i - 2 * (j - ddp__depthwise_before(k))
                     : j - i * k.stride;
}

/* The row that is read: of `width` pixels, `c` words from one to the next. */
struct ddp__depthwise_source {
    ptrdiff_t c;
    int width;
    __mmask16 mask; /* of words that there are, where it counts */
    struct ddp__bn_clamp_v16 norm;
};

DDP__V16_INLINE void ddp__depthwise_split(__m512i words, v16 v[2])
{
    v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    v[1] = _mm512_castsi512_ps(
        _mm512_and_si512(words, _mm512_set1_epi32((int)0xffff0000)));
}

/* Add the products of a row of taps.  x is the first pixel, which is `left`
 * pixels from the left edge (negative: outside).  Where pixels may be outside
 * (edge) or words be missing (masked), both constants, those count as 0. */
DDP__V16_INLINE void
ddp__depthwise_add_row(const struct ddp__depthwise_source *from, const float *x,
                       int left, const float *w,
                       const struct ddp__depthwise_kind k, bool edge,
                       bool masked, v16 *sum)
{
    int halves = k.b ? 2 : 1;
    v16 tap[2 * DDP__DEPTHWISE_TAPS];

#pragma GCC unroll 10
    for (int i = 0; i < k.size * halves; i++)
        tap[i] = LOAD(w + i * LANES);
#pragma GCC unroll 19
    for (int j = 0; j < ddp__depthwise_reach(k); j++, x += from->c) {
        v16 v[2] = {_mm512_setzero_ps()};

        if (!edge || (left + j >= 0 && left + j < from->width)) {
            v[0] = masked ? _mm512_maskz_loadu_ps(from->mask, x) : LOAD(x);
            if (k.norm == DDP__DEPTHWISE_READS)
                v[0] = ddp__bn_clamp_v16(&from->norm, v[0], 0xffff);
        }
        if (k.b)
            ddp__depthwise_split(_mm512_castps_si512(v[0]), v);
#pragma GCC unroll 8
        for (int i = 0; i < k.pixels; i++) {
            int at = ddp__depthwise_tap(k, j, i) * halves;

            if (at < 0 || at >= k.size * halves)
                continue;
            sum[i * halves] = FMA(tap[at], v[0], sum[i * halves]);
            if (k.b)
                sum[i * 2 + 1] = FMA(tap[at + 1], v[1], sum[i * 2 + 1]);
        }
    }
}

#endif
#endif
