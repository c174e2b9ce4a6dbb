/* thin_tile.c - products of few channels by many, over pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Values are read where they are: of the few channels one at a time, as an
 * operand that the processor repeats for all lanes, of the many as vectors.
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "thin_tile.h"

#ifdef DDP__X86
enum { LANES = 16, LINE = 64, MOST_ROWS = 9, MOST_VECTORS = 3 };

/* Up to three lines of the next block. */
DDP__V16_INLINE void fetch(struct ddp__thin_next *n)
{
    _mm_prefetch(n->at, _MM_HINT_T0);
    if (n->ahead > LINE)
        _mm_prefetch(n->at + LINE, _MM_HINT_T0);
    if (n->ahead > 2 * LINE)
        _mm_prefetch(n->at + 2 * LINE, _MM_HINT_T0);
    n->at += n->ahead;
}

/* rows and vectors are constants: every index of acc is known when this is
 * compiled. */
DDP__V16_INLINE void multiply(struct ddp__thin_tile *t, size_t rows,
                              size_t vectors)
{
    __m512 acc[MOST_ROWS][MOST_VECTORS];
    const float *thin = t->thin, *wide = t->wide;
    size_t last = t->cols - (vectors - 1) * LANES;
    __mmask16 mask = ddp__mask16(last);
    struct ddp__thin_next next = t->next[0], next2 = t->next[1];

#pragma GCC unroll 9
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (size_t j = 0; j < vectors; j++)
            acc[i][j] = _mm512_setzero_ps();
    for (size_t k = 0; k < t->pixels; k++) {
        __m512 v[MOST_VECTORS];

        fetch(&next);
        fetch(&next2);
#pragma GCC unroll 3
        for (size_t j = 0; j < vectors; j++)
            v[j] = _mm512_maskz_loadu_ps(j + 1 < vectors ? 0xffff : mask,
                                         wide + j * LANES);
#pragma GCC unroll 9
        for (size_t i = 0; i < rows; i++) {
            __m512 u = _mm512_set1_ps(thin[i]);

#pragma GCC unroll 3
            for (size_t j = 0; j < vectors; j++)
                acc[i][j] = _mm512_fmadd_ps(u, v[j], acc[i][j]);
        }
        thin += t->thin_pitch;
        wide += t->wide_pitch;
    }
    t->next[0] = next;
    t->next[1] = next2;
#pragma GCC unroll 9
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (size_t j = 0; j < vectors; j++) {
            float *to = t->sum + i * t->ld + j * LANES;

            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), acc[i][j]));
        }
}

/* An instance for each size. */
#define X(rows, vectors)                                                       \
    DDP__V16 static void multiply_##rows##x##vectors(struct ddp__thin_tile *t) \
    {                                                                          \
        multiply(t, rows, vectors);                                            \
    }
X(8, 1)
X(8, 2)
X(8, 3)
X(9, 1)
X(9, 2)
#undef X

void ddp__thin_tile(struct ddp__thin_tile *t)
{
    if (t->rows == 9)
        (t->cols > LANES ? multiply_9x2 : multiply_9x1)(t);
    else
        (t->cols > 2 * LANES ? multiply_8x3
         : t->cols > LANES   ? multiply_8x2
                             : multiply_8x1)(t);
}

#endif
