/* skinny_v8.c - products with few rows for AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One core of an Intel Xeon with AMX under load, limited to AVX2 (kernelbench
 * skinny), milliseconds of forward and both gradients by oneDNN 2.6, weights
 * changed before, and in this way:
 *
 *     3x3, 512 to 512, 2 images of 2x2         2.7 5.1 4.5   0.75 1.0 0.44
 *     3x3 stride 2, 512 to 512, to 7x7         4.6 5.1 5.3    3.2 4.3 2.4
 *
 * Processor time of dense layers of 16 samples, with weights in memory: 4096 to
 * 4096 9.5, 14.8, 6.8 ms; 25088 to 4096 55, 70, 40 ms.  Other processors were
 * not measured.
 */
#include "config.h"

#include <string.h>

#include "skinny_v8.h"

#ifdef DDP__X86
#include "cpu/vector/vec8.h"

/* 4 rows of weights times 2 of x are 8 sums of 16 registers. */
enum { COUNT = 2 };

typedef float parts __attribute__((vector_size(LANES * sizeof(float))));

/* In halves, quarters and so on. */
VEC_INLINE float add_parts(parts p)
{
    __m256 v = (__m256)p;
    __m128 half =
        _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return half[0] + half[1];
}

VEC_INLINE void put_parts(float *to, parts v, bool stream)
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
