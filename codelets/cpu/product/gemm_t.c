/* gemm_t.c - products of columns: a weight gradient is a sum over pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of the result, 8 rows by 32 columns, is kept in registers; at the end
 * of odd multiples of 16 columns it has 16.
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "gemm_t.h"

#ifdef DDP__X86
#include "gemm_sum.h"

enum { ROWS = 8, PANEL = DDP__GEMM_PANEL };

/* A block of p, and its factors. */
struct block {
    size_t k;
    const float *a, *b;
    size_t lda, ldb, ldp;
    bool add;
    const float *row, *col; /* units of integers; NULL: floats */
    float *p;
};

/* What a sum begins with: that of integers is added at the end. */
DDP__V16_INLINE v16 first_sum(bool integers, bool add, const float *p)
{
    return add && !integers ? LOAD(p) : _mm512_setzero_ps();
}

DDP__V16_INLINE void put_sum(bool integers, const struct block *t, size_t i,
                             size_t j, v16 sum)
{
    float *p = t->p + i * t->ldp + j;

    if (integers) {
        sum = sum_in_units(sum, t->row[i], LOAD(t->col + j));
        if (t->add)
            sum = ADD(sum, LOAD(p));
    }
    STORE(p, sum);
}

/* p (+)= a' b for ROWS rows and `wide` (a constant) times 16 columns, whose
 * sums are kept in registers: for that every index of acc has to be known when
 * this is compiled. */
DDP__V16_INLINE void block_t(bool integers, int wide, const struct block *t)
{
    v16 acc[ROWS][2];
    const float *a = t->a, *b = t->b;

#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS; i++) {
        const float *p = t->p + i * t->ldp;

        acc[i][0] = first_sum(integers, t->add, p);
        acc[i][1] = first_sum(integers, t->add && wide > 1, p + 16);
    }
    for (size_t l = 0; l < t->k; l++, a += t->lda, b += t->ldb) {
        v16 b0 = LOAD(b), b1 = wide > 1 ? LOAD(b + 16) : b0;

#pragma GCC unroll 8
        for (size_t i = 0; i < ROWS; i++) {
            v16 v = SET(a[i]);

            acc[i][0] = multiply_add(integers, v, b0, acc[i][0]);
            if (wide > 1)
                acc[i][1] = multiply_add(integers, v, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS; i++) {
        put_sum(integers, t, i, 0, acc[i][0]);
        if (wide > 1)
            put_sum(integers, t, i, 16, acc[i][1]);
    }
}

DDP__V16 static void whole_t(const struct block *t)
{
    block_t(false, 2, t);
}

DDP__V16 static void half_t(const struct block *t)
{
    block_t(false, 1, t);
}

DDP__V16 static void whole_t_i16(const struct block *t)
{
    block_t(true, 2, t);
}

DDP__V16 static void half_t_i16(const struct block *t)
{
    block_t(true, 1, t);
}

void ddp__gemm_t(const struct ddp__gemm_product *g, bool add, float *p,
                 size_t ldp)
{
    for (size_t j = 0; j < g->n; j += PANEL)
        for (size_t i = 0; i < g->m; i += ROWS) {
            struct block t = {.k = g->k,
                              .a = (const float *)g->a + i,
                              .lda = g->lda,
                              .b = (const float *)g->b + j,
                              .ldb = g->ldb,
                              .add = add,
                              .row = g->row ? g->row + i : NULL,
                              .col = g->row ? g->col + j : NULL,
                              .p = p + i * ldp + j,
                              .ldp = ldp};
            bool wide = g->n - j >= PANEL;

            if (g->row)
                (wide ? whole_t_i16 : half_t_i16)(&t);
            else
                (wide ? whole_t : half_t)(&t);
        }
}

const struct ddp__gemm_products ddp__wino_products_v16 = {
    .panel = PANEL,
    .rows = DDP__GEMM_ROWS,
    .multiply = ddp__gemm,
    .multiply_t = ddp__gemm_t,
};

#endif
