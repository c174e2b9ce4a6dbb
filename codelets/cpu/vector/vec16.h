/* vec16.h - short names for vectors of 16 floats
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Headers that are compiled for both say VEC, vec and LANES; which those are
 * depends on whether a source file includes this one first, or vec8.h.
 */
#ifndef DDP_CPU_VEC16_H
#define DDP_CPU_VEC16_H

#include <stdbool.h>

#include "turn16.h"
#include "v16.h"

#define VEC DDP__V16
#define VEC_INLINE DDP__V16_INLINE
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define STREAM(p, v) _mm512_stream_ps(p, v)
#define SET(c) _mm512_set1_ps(c)
#define ZERO _mm512_setzero_ps()
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define MAX(a, b) _mm512_max_ps(a, b)
#define MIN(a, b) _mm512_min_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)   /* a b + c */
#define FMS(a, b, c) _mm512_fmsub_ps(a, b, c)   /* a b - c */
#define FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a b */

enum { LANES = 16 };

typedef v16 vec;

/* LANES values, f32 or bf16 (b, a constant). */
DDP__V16_INLINE v16 load_values(const void *p, bool b)
{
    if (!b)
        return LOAD(p);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

/* bf16 as by ddp__round_bf16(). */
DDP__V16_INLINE void store_values(void *p, v16 v, bool b, bool past)
{
    __m512i u = _mm512_castps_si512(v), up;

    if (!b) {
        if (past)
            STREAM(p, v);
        else
            STORE(p, v);
        return;
    }
    up = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    up = _mm512_add_epi32(_mm512_add_epi32(u, up), _mm512_set1_epi32(0x7fff));
    up = _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u,
                              _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
}

/* Rows become columns. */
DDP__V16_INLINE void turn_square(const v16 in[16], v16 out[16])
{
    __m512i from[16], to[16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        from[i] = _mm512_castps_si512(in[i]);
    ddp__turn16(from, to);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        out[i] = _mm512_castsi512_ps(to[i]);
}

#endif
