/* v16.h - functions for AVX-512, in files that are compiled for all processors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_V16_H
#define DDP_CPU_V16_H

#include "cpu/isa.h"

#ifdef DDP__X86
#include <immintrin.h>
#include <stddef.h>

typedef __m512 v16;

#define DDP__V16_ISA target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#define DDP__V16 __attribute__((DDP__V16_ISA))
#define DDP__V16_INLINE                                                        \
    static inline __attribute__((always_inline, DDP__V16_ISA))

/* The first `left` of 16 values, or all of them. */
static inline __mmask16 ddp__mask16(size_t left)
{
    return (__mmask16)(left < 16 ? (1U << left) - 1 : 0xffff);
}
#endif

#endif
