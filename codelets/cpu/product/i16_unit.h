/* i16_unit.h - the units of vectors of 16-bit integers; see i16_round.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_I16_UNIT_H
#define DDP_CPU_I16_UNIT_H

#include "cpu/isa.h"

#ifdef DDP__X86
#include "cpu/vector/vec16.h"

/* The norm of the integers.  Squares of what is this small or large are summed
 * with a factor, lest the sum is 0 or infinite. */
#define DDP__I16_NORM 32766.0F
#define DDP__I16_TINY 1e-30F
#define DDP__I16_HUGE 1e30F
#define DDP__I16_UP 0x1p70F
#define DDP__I16_DOWN 0x1p-70F

/* Vectors of a smaller norm count as 0. */
#define DDP__I16_LEAST 1e-33F

/* What values of vectors with that norm are multiplied by; where all are 0, by
 * anything finite. */
DDP__V16_INLINE v16 ddp__i16_factor(v16 norm)
{
    __mmask16 none = _mm512_cmp_ps_mask(norm, SET(DDP__I16_LEAST), _CMP_LT_OQ);

    return _mm512_mask_mov_ps(_mm512_div_ps(SET(DDP__I16_NORM), norm), none,
                              SET(1));
}

/* The same of a sum of squares that were multiplied by by^2. */
DDP__V16_INLINE v16 ddp__i16_factor_of(v16 sum, v16 by)
{
    return ddp__i16_factor(_mm512_div_ps(_mm512_sqrt_ps(sum), by));
}

DDP__V16_INLINE v16 ddp__i16_unit(v16 factor)
{
    return _mm512_div_ps(SET(1), factor);
}

/* Those of the sums that are out of range, with what to multiply by. */
DDP__V16_INLINE __mmask16 ddp__i16_out_of_range(v16 sum, v16 *factor)
{
    __mmask16 small = _mm512_cmp_ps_mask(sum, SET(DDP__I16_TINY), _CMP_LT_OQ);
    __mmask16 large = _mm512_cmp_ps_mask(sum, SET(DDP__I16_HUGE), _CMP_GT_OQ);

    *factor = _mm512_mask_mov_ps(SET(1), small, SET(DDP__I16_UP));
    *factor = _mm512_mask_mov_ps(*factor, large, SET(DDP__I16_DOWN));
    return small | large;
}

/* Values of bf16 in pairs: the first of each, and the second. */
DDP__V16_INLINE v16 ddp__i16_low(__m512i pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}

DDP__V16_INLINE v16 ddp__i16_high(__m512i pairs)
{
    return _mm512_castsi512_ps(
        _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}

/* Both rounded, low below high. */
DDP__V16_INLINE __m512i ddp__i16_pair(v16 low, v16 high, v16 factor)
{
    __m512i l = _mm512_cvtps_epi32(MUL(low, factor));
    __m512i h = _mm512_cvtps_epi32(MUL(high, factor));

    /* the low half of l below that of h */
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xffff), l,
                                     _mm512_slli_epi32(h, 16), 0xca);
}

#endif
#endif
