/* vec8.h - short names for vectors of 8 floats
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * As vec16.h, for AVX2.  There is no bf16.
 */
#ifndef DDP_CPU_VEC8_H
#define DDP_CPU_VEC8_H

#include <immintrin.h>
#include <stdbool.h>

#define VEC __attribute__((target("avx2,fma")))
#define VEC_INLINE                                                             \
    static inline __attribute__((always_inline, target("avx2,fma")))
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define STREAM(p, v) _mm256_stream_ps(p, v)
#define SET(c) _mm256_set1_ps(c)
#define ZERO _mm256_setzero_ps()
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)
#define MUL(a, b) _mm256_mul_ps(a, b)
#define MAX(a, b) _mm256_max_ps(a, b)
#define MIN(a, b) _mm256_min_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)   /* a b + c */
#define FMS(a, b, c) _mm256_fmsub_ps(a, b, c)   /* a b - c */
#define FNMA(a, b, c) _mm256_fnmadd_ps(a, b, c) /* c - a b */

enum { LANES = 8 };

typedef __m256 vec;

/* b: false */
VEC_INLINE vec load_values(const void *p, bool b)
{
    (void)b;
    return LOAD(p);
}

VEC_INLINE void store_values(void *p, vec v, bool b, bool past)
{
    (void)b;
    if (past)
        STREAM(p, v);
    else
        STORE(p, v);
}

/* Rows become columns. */
VEC_INLINE void turn_square(const vec in[8], vec out[8])
{
    vec t[8], u[8];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(in[2 * i], in[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(in[2 * i], in[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        out[i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x20);
        out[4 + i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x31);
    }
}

#endif
