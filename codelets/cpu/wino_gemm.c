/* wino_gemm.c - the matrix products of Winograd's convolutions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of the result is kept in registers: 14 rows by 32 columns, or 8
 * by 32; at the end of odd multiples of 16 columns by 16.
 */
#include "config.h"

#include "wino.h"
#include "wino_gemm.h"

#ifdef DDP__WINO
#include <immintrin.h>

enum { ROWS = 14, ROWS_T = 8, PANEL = DDP__WINO_PANEL };

/* `rows` rows of a against a panel of b of `wide` times 16 columns (constants
 * both).  Meanwhile k lines from `next` on are fetched. */
DDP__WINO_INLINE void block(int rows, int wide, size_t k, const float *a,
                            size_t lda, const float *b, const float *next,
                            float *p, size_t ldp)
{
    __m512 acc[ROWS][2];
    const float *a0 = a, *a3 = a + 3 * lda, *a6 = a + 6 * lda;
    const float *a9 = a + 9 * lda, *a12 = a + 12 * lda;

#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        acc[i][0] = acc[i][1] = _mm512_setzero_ps();
    for (size_t l = 0; l < k; l++, b += wide * 16, next += 16) {
        __m512 b0 = _mm512_loadu_ps(b);
        __m512 b1 = wide > 1 ? _mm512_loadu_ps(b + 16) : b0;

        _mm_prefetch((const void *)next, _MM_HINT_T1);
#define ROW(i, at)                                                             \
    if (i < rows) {                                                            \
        __m512 v = _mm512_set1_ps(at);                                         \
        acc[i][0] = _mm512_fmadd_ps(v, b0, acc[i][0]);                         \
        if (wide > 1)                                                          \
            acc[i][1] = _mm512_fmadd_ps(v, b1, acc[i][1]);                     \
    }
#define ROW3(i, q)                                                             \
    ROW(i, q[0])                                                               \
    ROW(i + 1, q[lda])                                                         \
    ROW(i + 2, q[2 * lda])
        ROW3(0, a0)
        ROW3(3, a3)
        ROW3(6, a6)
        ROW3(9, a9)
        ROW(12, a12[0])
        ROW(13, a12[lda])
#undef ROW3
#undef ROW
        a0++, a3++, a6++, a9++, a12++;
        /* One register per pointer, not one per row. */
        __asm__("" : "+r"(a0), "+r"(a3), "+r"(a6), "+r"(a9), "+r"(a12));
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        _mm512_storeu_ps(p + (size_t)i * ldp, acc[i][0]);
        if (wide > 1)
            _mm512_storeu_ps(p + (size_t)i * ldp + 16, acc[i][1]);
    }
}

#define REST(X)                                                                \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

DDP__WINO static void whole(size_t k, const float *a, size_t lda,
                            const float *b, const float *next, float *p,
                            size_t ldp)
{
    block(ROWS, 2, k, a, lda, b, next, p, ldp);
}

DDP__WINO static void half(size_t k, const float *a, size_t lda, const float *b,
                           const float *next, float *p, size_t ldp)
{
    block(ROWS, 1, k, a, lda, b, next, p, ldp);
}

DDP__WINO static void rest_of_whole(size_t rows, size_t k, const float *a,
                                    size_t lda, const float *b, float *p,
                                    size_t ldp)
{
    switch (rows) {
#define X(r)                                                                   \
    case r:                                                                    \
        block(r, 2, k, a, lda, b, b, p, ldp);                                  \
        break;
        REST(X)
#undef X
    default:
        break;
    }
}

DDP__WINO static void rest_of_half(size_t rows, size_t k, const float *a,
                                   size_t lda, const float *b, float *p,
                                   size_t ldp)
{
    switch (rows) {
#define X(r)                                                                   \
    case r:                                                                    \
        block(r, 1, k, a, lda, b, b, p, ldp);                                  \
        break;
        REST(X)
#undef X
    default:
        break;
    }
}

void ddp__wino_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda,
                    const float *b, float *p, size_t ldp)
{
    /* The next panel (the next matrix's, after the last) comes in halves. */
    for (size_t j = 0; j < n; j += PANEL, b += PANEL * k) {
        bool wide = n - j >= PANEL;
        size_t i = 0;

        for (; i + ROWS <= m; i += ROWS)
            (wide ? whole
                  : half)(k, a + i * lda, lda, b,
                          i < 2 * ROWS ? b + PANEL * k + i / ROWS * 16 * k : b,
                          p + i * ldp + j, ldp);
        (wide ? rest_of_whole : rest_of_half)(m - i, k, a + i * lda, lda, b,
                                              p + i * ldp + j, ldp);
    }
}

/* p (+)= a' b for ROWS_T rows and `wide` (a constant) times 16 columns, whose
 * sums are kept in registers: for that every index of acc has to be known when
 * this is compiled. */
DDP__WINO_INLINE void block_t(int wide, size_t k, const float *a, size_t lda,
                              const float *b, size_t ldb, bool add, float *p,
                              size_t ldp)
{
    __m512 acc[ROWS_T][2];

#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS_T; i++) {
        acc[i][0] = add ? _mm512_loadu_ps(p + i * ldp) : _mm512_setzero_ps();
        acc[i][1] = add && wide > 1 ? _mm512_loadu_ps(p + i * ldp + 16)
                                    : _mm512_setzero_ps();
    }
    for (size_t l = 0; l < k; l++, a += lda, b += ldb) {
        __m512 b0 = _mm512_loadu_ps(b);
        __m512 b1 = wide > 1 ? _mm512_loadu_ps(b + 16) : b0;

#pragma GCC unroll 8
        for (size_t i = 0; i < ROWS_T; i++) {
            __m512 v = _mm512_set1_ps(a[i]);

            acc[i][0] = _mm512_fmadd_ps(v, b0, acc[i][0]);
            if (wide > 1)
                acc[i][1] = _mm512_fmadd_ps(v, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS_T; i++) {
        _mm512_storeu_ps(p + i * ldp, acc[i][0]);
        if (wide > 1)
            _mm512_storeu_ps(p + i * ldp + 16, acc[i][1]);
    }
}

DDP__WINO static void whole_t(size_t k, const float *a, size_t lda,
                              const float *b, size_t ldb, bool add, float *p,
                              size_t ldp)
{
    block_t(2, k, a, lda, b, ldb, add, p, ldp);
}

DDP__WINO static void half_t(size_t k, const float *a, size_t lda,
                             const float *b, size_t ldb, bool add, float *p,
                             size_t ldp)
{
    block_t(1, k, a, lda, b, ldb, add, p, ldp);
}

void ddp__wino_gemm_t(size_t m, size_t n, size_t k, const float *a, size_t lda,
                      const float *b, size_t ldb, bool add, float *p,
                      size_t ldp)
{
    for (size_t j = 0; j < n; j += PANEL)
        for (size_t i = 0; i < m; i += ROWS_T)
            (n - j >= PANEL ? whole_t : half_t)(k, a + i, lda, b + j, ldb, add,
                                                p + i * ldp + j, ldp);
}

#endif
