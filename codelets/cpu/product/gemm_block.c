/* gemm_block.c - a block of rows times a panel of columns
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The block is kept in registers: 14 rows by 32 columns; at the end of odd
 * multiples of 16 columns by 16.  Pairs of integers take the places of floats:
 * k then counts pairs.
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "gemm_block.h"

#ifdef DDP__X86
#include "gemm_finish.h"
#include "gemm_round.h"
#include "gemm_sum.h"

enum { ROWS = DDP__GEMM_ROWS };

/* ---- what is fetched ---------------------------------------------------- */

/* Prefetches of weights for later go to the second-level cache. */
DDP__V16_INLINE void fetch(enum ddp__gemm_kind kind, const float *next)
{
    if (kind == DDP__GEMM_STREAM)
        _mm_prefetch((const void *)next, _MM_HINT_T0);
    else
        _mm_prefetch((const void *)next, _MM_HINT_T1);
}

DDP__V16_INLINE void fetch_line(const struct ddp__gemm_fetch *f, size_t line)
{
    size_t row = line >> f->shift, mask = ((size_t)1 << f->shift) - 1;
    const float *p = f->from + row * f->pitch + (line & mask) * 16;

    _mm_prefetch((const void *)p, _MM_HINT_T1);
}

/* ---- how sums begin and end --------------------------------------------- */

DDP__V16_INLINE v16 begin_sum(enum ddp__gemm_kind kind,
                              const struct ddp__gemm_block *t, size_t j)
{
    return kind == DDP__GEMM_STREAM && t->bias ? LOAD(t->bias + j)
                                               : _mm512_setzero_ps();
}

DDP__V16_INLINE void begin_sums(enum ddp__gemm_kind kind, size_t rows, int wide,
                                const struct ddp__gemm_block *t,
                                v16 acc[ROWS][2])
{
    v16 first = begin_sum(kind, t, 0);
    v16 second = wide > 1 ? begin_sum(kind, t, 16) : first;

#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        acc[i][0] = first;
        acc[i][1] = second;
    }
}

DDP__V16_INLINE void end_sum(enum ddp__gemm_kind kind,
                             const struct ddp__gemm_block *t, size_t i,
                             size_t j, v16 sum)
{
    float *p = t->p + i * t->ldp + j;

    if (kind == DDP__GEMM_INTEGERS)
        sum = sum_in_units(sum, t->row[i], LOAD(t->col + j));
    if (kind == DDP__GEMM_STREAM && t->past)
        _mm512_stream_ps(p, sum);
    else
        STORE(p, sum);
}

DDP__V16_INLINE void end_sums(enum ddp__gemm_kind kind, size_t rows, int wide,
                              const struct ddp__gemm_block *t, v16 acc[ROWS][2])
{
#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        end_sum(kind, t, i, 0, acc[i][0]);
        if (wide > 1)
            end_sum(kind, t, i, 16, acc[i][1]);
    }
}

DDP__V16_INLINE void finish_sums(const struct ddp__gemm_block *t, size_t rows,
                                 int wide, v16 acc[ROWS][2])
{
    struct ending first = ending_of(t, 0);
    struct ending second = wide > 1 ? ending_of(t, 16) : first;

#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        finish_sum(&first, t->p + i * t->ldp, acc[i][0]);
        if (wide > 1)
            finish_sum(&second, t->p + i * t->ldp + 16, acc[i][1]);
    }
}

DDP__V16_INLINE void round_sums(const struct ddp__gemm_block *t, size_t rows,
                                int wide, v16 acc[ROWS][2])
{
    uint16_t *const *y = t->round->y + t->first;
    __mmask32 mask = mask_of_columns(t->round);
    bool past = t->round->past;
    v16 first = LOAD(t->col), second = wide > 1 ? LOAD(t->col + 16) : first;

#pragma GCC unroll 14
    for (size_t i = 0; i < rows; i++) {
        uint16_t *to = y[i] + t->round->at;
        v16 v = sum_in_units(acc[i][0], t->row[i], first);

        if (wide > 1)
            put_rounded(to, v, sum_in_units(acc[i][1], t->row[i], second), mask,
                        past);
        else
            put_rounded_half(to, v, (__mmask16)mask);
    }
}

/* ---- a b ---------------------------------------------------------------- */

/* Products of k columns of a with k rows of b. */
DDP__V16_INLINE void add_products(enum ddp__gemm_kind kind, size_t rows,
                                  int wide, const struct ddp__gemm_block *t,
                                  v16 acc[ROWS][2])
{
    size_t lda = t->lda;
    const float *a0 = t->a, *a3 = a0 + 3 * lda, *a6 = a3 + 3 * lda;
    const float *a9 = a6 + 3 * lda, *a12 = a9 + 3 * lda;
    const float *b = t->b, *next = t->next;
    bool integers = kind == DDP__GEMM_INTEGERS || kind == DDP__GEMM_ROUND;

    for (size_t l = 0; l < t->k; l++, b += wide * 16, next += 16) {
        v16 b0 = LOAD(b), b1 = wide > 1 ? LOAD(b + 16) : b0;

        if (kind == DDP__GEMM_FETCH)
            fetch_line(t->finish->fetch, t->line + l);
        else
            fetch(kind, next);
#define ROW(i, at)                                                             \
    if (i < rows) {                                                            \
        v16 v = SET(at);                                                       \
        acc[i][0] = multiply_add(integers, v, b0, acc[i][0]);                  \
        if (wide > 1)                                                          \
            acc[i][1] = multiply_add(integers, v, b1, acc[i][1]);              \
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
}

/* `rows` rows of a against a panel of b of `wide` times 16 columns (constants
 * all). */
DDP__V16_INLINE void block(enum ddp__gemm_kind kind, size_t rows, int wide,
                           const struct ddp__gemm_block *t)
{
    v16 acc[ROWS][2];

    begin_sums(kind, rows, wide, t, acc);
    add_products(kind, rows, wide, t, acc);
    if (kind == DDP__GEMM_FINISH || kind == DDP__GEMM_FETCH)
        finish_sums(t, rows, wide, acc);
    else if (kind == DDP__GEMM_ROUND)
        round_sums(t, rows, wide, acc);
    else
        end_sums(kind, rows, wide, t, acc);
}

/* 1 to ROWS of them. */
#define ROW_COUNTS(X)                                                          \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

DDP__V16_INLINE void rows_of_block(enum ddp__gemm_kind kind, int wide,
                                   size_t rows, const struct ddp__gemm_block *t)
{
    switch (rows) {
#define X(r)                                                                   \
    case r:                                                                    \
        block(kind, r, wide, t);                                               \
        break;
        ROW_COUNTS(X)
#undef X
    default:
        break;
    }
}

/* A function for each kind, of half a panel and of a whole one. */
#define WIDTHS(kind, name)                                                     \
    DDP__V16 static void half_##name(size_t rows,                              \
                                     const struct ddp__gemm_block *t)          \
    {                                                                          \
        rows_of_block(kind, 1, rows, t);                                       \
    }                                                                          \
    DDP__V16 static void whole_##name(size_t rows,                             \
                                      const struct ddp__gemm_block *t)         \
    {                                                                          \
        rows_of_block(kind, 2, rows, t);                                       \
    }
WIDTHS(DDP__GEMM_FLOATS, floats)
WIDTHS(DDP__GEMM_INTEGERS, integers)
WIDTHS(DDP__GEMM_ROUND, round)
WIDTHS(DDP__GEMM_STREAM, stream)
WIDTHS(DDP__GEMM_FINISH, finish)
WIDTHS(DDP__GEMM_FETCH, fetch)
#undef WIDTHS

ddp__gemm_block_f *const ddp__gemm_block[DDP__GEMM_KINDS][2] = {
    [DDP__GEMM_FLOATS] = {half_floats, whole_floats},
    [DDP__GEMM_INTEGERS] = {half_integers, whole_integers},
    [DDP__GEMM_ROUND] = {half_round, whole_round},
    [DDP__GEMM_STREAM] = {half_stream, whole_stream},
    [DDP__GEMM_FINISH] = {half_finish, whole_finish},
    [DDP__GEMM_FETCH] = {half_fetch, whole_fetch},
};

#endif
