/* gemm_sum.h - sums of products of floats, or of pairs of integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_GEMM_SUM_H
#define DDP_CPU_GEMM_SUM_H

#include "cpu/vector/vec16.h"

/* sum + a b, or of integers (a constant) a sum of products in 32 bits; as text
 * for the assembler, because floats have to do without AVX512_VNNI. */
DDP__V16_INLINE v16 multiply_add(bool integers, v16 a, v16 b, v16 sum)
{
    if (!integers)
        return FMA(a, b, sum);
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

/* A sum of integers as floats, in units of a row and of columns. */
DDP__V16_INLINE v16 sum_in_units(v16 sum, float row, v16 col)
{
    sum = _mm512_cvtepi32_ps(_mm512_castps_si512(sum));
    return MUL(MUL(sum, SET(row)), col);
}

#endif
