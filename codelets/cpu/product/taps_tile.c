/* taps_tile.c - panels of matrices, and sums of their products
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "taps_tile.h"

#ifdef DDP__X86
#include "cpu/vector/turn16.h"

enum { LANES = 16, ROWS = DDP__TAPS_ROWS, COLS = DDP__TAPS_COLS };
_Static_assert(COLS == 2 * LANES, "a line is two vectors");

/* ---- panels ------------------------------------------------------------- */

DDP__V16 void ddp__taps_copy(const float *from, size_t step, size_t lines,
                             size_t cols, size_t width, float *to)
{
    __mmask16 low = ddp__mask16(cols);
    __mmask16 high = ddp__mask16(cols > LANES ? cols - LANES : 0);

    for (size_t i = 0; i < lines; i++, from += step, to += width) {
        _mm512_mask_storeu_ps(to, low, _mm512_maskz_loadu_ps(low, from));
        if (high)
            _mm512_mask_storeu_ps(to + LANES, high,
                                  _mm512_maskz_loadu_ps(high, from + LANES));
    }
}

/* A column of 16 values at most of all lines. */
DDP__V16 static void turn_some(const float *from, size_t step, size_t lines,
                               size_t cols, size_t width, float *to)
{
    __mmask16 mask = ddp__mask16(cols);

    for (size_t at = 0; at < lines; at += LANES) {
        __m512i in[LANES], out[LANES];

        for (size_t i = 0; i < LANES; i++)
            in[i] = _mm512_loadu_si512(from + (i < cols ? i : 0) * step + at);
        ddp__turn16(in, out);
        for (size_t i = 0; i < LANES; i++)
            _mm512_mask_storeu_epi32(to + (at + i) * width, mask, out[i]);
    }
}

void ddp__taps_turn(const float *from, size_t step, size_t lines, size_t cols,
                    size_t width, float *to)
{
    for (size_t i = 0; i < cols; i += LANES)
        turn_some(from + i * step, step, lines,
                  cols - i < LANES ? cols - i : LANES, width, to + i);
}

/* ---- products ----------------------------------------------------------- */

DDP__V16_INLINE void finish(const struct ddp__taps_tile *t, float *p,
                            size_t column, __m512 sum)
{
    if (t->bias)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(t->bias + column));
    if (t->add)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(p));
    /* A NaN remains one. */
    sum = _mm512_max_ps(_mm512_set1_ps(t->low), sum);
    sum = _mm512_min_ps(_mm512_set1_ps(t->high), sum);
    if (t->past)
        _mm512_stream_ps(p, sum);
    else
        _mm512_storeu_ps(p, sum);
}

/* rows is a constant: every index of acc is known when this is compiled. */
DDP__V16_INLINE void multiply(const struct ddp__taps_tile *t, size_t rows)
{
    __m512 acc[ROWS][2];

#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        acc[i][0] = acc[i][1] = _mm512_setzero_ps();
        if (t->add) {
            _mm_prefetch((const void *)(t->p + i * t->ldp), _MM_HINT_T0);
            _mm_prefetch((const void *)(t->p + i * t->ldp + LANES),
                         _MM_HINT_T0);
        }
    }
    for (size_t piece = 0; piece < t->count; piece++) {
        const float *a = t->piece[piece].a, *b = t->piece[piece].b;

        for (size_t k = 0; k < t->k; k++, a += ROWS, b += COLS) {
            __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + LANES);

#pragma GCC unroll 14
            for (size_t i = 0; i < rows; i++) {
                __m512 v = _mm512_set1_ps(a[i]);

                acc[i][0] = _mm512_fmadd_ps(v, b0, acc[i][0]);
                acc[i][1] = _mm512_fmadd_ps(v, b1, acc[i][1]);
            }
        }
    }
#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        finish(t, t->p + i * t->ldp, 0, acc[i][0]);
        finish(t, t->p + i * t->ldp + LANES, LANES, acc[i][1]);
    }
}

/* An instance for each number of rows. */
#define ROW_COUNTS(X)                                                          \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#define X(rows)                                                                \
    DDP__V16 static void multiply_##rows(const struct ddp__taps_tile *t)       \
    {                                                                          \
        multiply(t, rows);                                                     \
    }
ROW_COUNTS(X)
#undef X

void ddp__taps_tile(const struct ddp__taps_tile *t)
{
    static void (*const of[])(const struct ddp__taps_tile *t) = {
#define X(rows) [rows] = multiply_##rows,
        ROW_COUNTS(X)
#undef X
    };

    of[t->rows](t);
}

#endif
