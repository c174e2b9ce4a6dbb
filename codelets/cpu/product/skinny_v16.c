/* skinny_v16.c - products with few rows for AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "skinny_blocks.h"
#include "skinny_v16.h"

#ifdef DDP__X86
#include "cpu/vector/vec16.h"

enum {
    COUNT = 4, /* rows of x that are multiplied at a time */
    FEW = 3
};

typedef float parts __attribute__((vector_size(LANES * sizeof(float))));

/* In halves, quarters and so on. */
VEC_INLINE float add_parts(parts p)
{
    __m512 v = (__m512)p;
    __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half),
                                _mm256_extractf128_ps(half, 1));

    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return quarter[0] + quarter[1];
}

VEC_INLINE void put_parts(float *to, parts v, bool stream)
{
    if (stream)
        _mm512_stream_ps(to, (__m512)v);
    else
        memcpy(to, &v, sizeof(v));
}

#include "skinny_loops.h"

/* For few rows, rows of weights are added in the order of memory. */
static void add_gradient(const struct ddp__skinny_product *p,
                         const struct ddp__skinny_tap *t, const float *w,
                         const float *dy, size_t len, float *dx)
{
    if (t->n > FEW)
        ddp__skinny_blocks(p, t, w, dy, len, dx);
    else
        add_columns(p, t, w, dy, len, dx);
}

const struct ddp__skinny_loops ddp__skinny_v16 = {
    .multiply = multiply,
    .add_columns = add_gradient,
    .put_columns = put_columns,
};

#endif
