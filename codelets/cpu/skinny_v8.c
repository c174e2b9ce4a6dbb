/* skinny_v8.c - products with few rows for AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "skinny_v8.h"

#ifdef DDP__SKINNY_V8
#include <immintrin.h>

#define LOOP __attribute__((target("avx2,fma")))
#define LOOP_INLINE                                                            \
    static inline __attribute__((always_inline, target("avx2,fma")))

/* 4 rows of weights times 2 of x are 8 sums of 16 registers. */
enum { LANES = 8, COUNT = 2 };

typedef float parts __attribute__((vector_size(LANES * sizeof(float))));

/* In halves, quarters and so on. */
LOOP_INLINE float add_parts(parts p)
{
    __m256 v = (__m256)p;
    __m128 half =
        _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return half[0] + half[1];
}

LOOP_INLINE void put_parts(float *to, parts v, bool stream)
{
    if (stream)
        _mm256_stream_ps(to, (__m256)v);
    else
        memcpy(to, &v, sizeof(v));
}

#include "skinny_loops.h"

const struct ddp__skinny_loops ddp__skinny_v8 = {
    .multiply = multiply,
    .add_columns = add_columns,
    .put_columns = put_columns,
};

#endif
