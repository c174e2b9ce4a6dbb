/* unit_v16.h - 32 values of f32 or bf16 in two vectors, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of bf16 the even ones are in one vector, the odd ones in the other: a unit is
 * then a vector in memory, and the upper halves of two in registers.
 */
#ifndef DDP_UNIT_V16_H
#define DDP_UNIT_V16_H

#include "cpu/cpu.h"
#include "cpu/isa.h"
#include "v16.h"

enum { DDP__UNIT = 32 };

/* Whether the processor can, of bf16 or f32. */
static inline bool ddp__unit_v16(bool b)
{
    return b ? ddp__avx512_bf16_here() : ddp__avx512_here();
}

#ifdef DDP__X86

/* Kernels of f32 convert nothing to bf16: they need no avx512bf16. */
#define DDP__UNIT_ISA                                                          \
    target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define DDP__UNIT_TARGET __attribute__((DDP__UNIT_ISA))
#define DDP__UNIT_INLINE                                                       \
    static inline __attribute__((always_inline, DDP__UNIT_ISA))

enum { DDP__UNIT_AHEAD = 4 << 10 /* bytes; 8 Ki: up to 24 % slower */ };

/* How the values of a unit are in memory; all but `mask` are constants of the
 * loops. */
struct ddp__unit {
    bool b, whole, stream;
    __mmask32 mask; /* of those there are, unless whole */
};

/* Processors see too late that several rows are read: what comes next is
 * fetched here. */
DDP__UNIT_INLINE void ddp__unit_load(v16 v[2], const void *p, size_t i,
                                     struct ddp__unit k)
{
    const char *next = (const char *)ddp__at(p, i, k.b) + DDP__UNIT_AHEAD;

    _mm_prefetch(next, _MM_HINT_T0);
    if (k.b) {
        const uint16_t *at = (const uint16_t *)p + i;
        __m512i w = k.whole ? _mm512_loadu_si512(at)
                            : _mm512_maskz_loadu_epi16(k.mask, at);

        v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
        v[1] = _mm512_castsi512_ps(
            _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
    } else {
        const float *at = (const float *)p + i;

        _mm_prefetch(next + 64, _MM_HINT_T0);
        v[0] = k.whole ? _mm512_loadu_ps(at)
                       : _mm512_maskz_loadu_ps((__mmask16)k.mask, at);
        v[1] = k.whole
                   ? _mm512_loadu_ps(at + 16)
                   : _mm512_maskz_loadu_ps((__mmask16)(k.mask >> 16), at + 16);
    }
}

DDP__UNIT_INLINE void ddp__unit_put_bf16(uint16_t *p, __m512i w,
                                         struct ddp__unit k)
{
    if (k.stream)
        _mm512_stream_si512((void *)p, w);
    else if (k.whole)
        _mm512_storeu_si512(p, w);
    else
        _mm512_mask_storeu_epi16(p, k.mask, w);
}

/* As store.c: the processor rounds numbers below 2^-126 to 0. */
DDP__UNIT_INLINE __m512i ddp__unit_round_bf16(const v16 v[2])
{
    const __m512i turns = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
        6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);

    return _mm512_permutexvar_epi16(turns,
                                    (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]));
}

/* Of what ddp__unit_load() made of them. */
DDP__UNIT_INLINE __m512i ddp__unit_exact_bf16(const v16 v[2])
{
    return _mm512_mask_blend_epi16(
        0xaaaaaaaa, _mm512_srli_epi32(_mm512_castps_si512(v[0]), 16),
        _mm512_castps_si512(v[1]));
}

DDP__UNIT_INLINE void ddp__unit_put_f32(float *p, v16 v, struct ddp__unit k,
                                        __mmask16 mask)
{
    if (k.stream)
        _mm512_stream_ps(p, v);
    else if (k.whole)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, mask, v);
}

/* exact: v are values that were loaded. */
DDP__UNIT_INLINE void ddp__unit_put(void *p, size_t i, const v16 v[2],
                                    struct ddp__unit k, bool exact)
{
    if (k.b) {
        ddp__unit_put_bf16(
            (uint16_t *)p + i,
            exact ? ddp__unit_exact_bf16(v) : ddp__unit_round_bf16(v), k);
    } else {
        ddp__unit_put_f32((float *)p + i, v[0], k, (__mmask16)k.mask);
        ddp__unit_put_f32((float *)p + i + 16, v[1], k,
                          (__mmask16)(k.mask >> 16));
    }
}

#endif
#endif
