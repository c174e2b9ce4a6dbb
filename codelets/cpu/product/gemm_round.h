/* gemm_round.h - sums of products of integers as bf16
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As text for the assembler, because floats have to do without AVX512_BF16. The
 * processor rounds numbers below 2^-126 to 0.
 */
#ifndef DDP_CPU_GEMM_ROUND_H
#define DDP_CPU_GEMM_ROUND_H

#include "cpu/vector/vec16.h"
#include "gemm.h"

DDP__V16_INLINE __mmask32 mask_of_columns(const struct ddp__gemm_round *r)
{
    return r->columns < DDP__GEMM_PANEL ? (1U << r->columns) - 1 : 0xffffffff;
}

DDP__V16_INLINE void put_rounded(uint16_t *to, v16 low, v16 high,
                                 __mmask32 mask, bool past)
{
    __m512i v;

    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(v) : "v"(low), "v"(high));
    if (past)
        _mm512_stream_si512((void *)to, v);
    else
        _mm512_mask_storeu_epi16(to, mask, v);
}

DDP__V16_INLINE void put_rounded_half(uint16_t *to, v16 v, __mmask16 mask)
{
    __m256i half;

    __asm__("vcvtneps2bf16 %1, %0" : "=v"(half) : "v"(v));
    _mm256_mask_storeu_epi16(to, mask, half);
}

#endif
