/* turn16.h - 16 vectors of 16 numbers, turned
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_TURN16_H
#define DDP_CPU_TURN16_H

#include <immintrin.h>

/* 16 x 16 numbers of 32 bits, rows to columns. */
static inline __attribute__((always_inline, target("avx512f"))) void
ddp__turn16(const __m512i in[16], __m512i out[16])
{
    __m512i t[16], u[16];

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        u[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        u[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        out[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        out[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
        out[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        out[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
    }
}

#endif
