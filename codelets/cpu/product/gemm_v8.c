/* gemm_v8.c - products of matrices in panels, with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of the result, 6 rows by 16 columns, is kept in 12 of 16 registers.
 */
#include "config.h"

#include "cpu/vector/v16.h"
#include "gemm_v8.h"

#ifdef DDP__X86
#include "cpu/vector/vec8.h"

enum { ROWS = 6, PANEL = 2 * LANES };

/* A block of p, and its factors. */
struct block {
    size_t k;
    const float *a, *b;
    size_t lda, ldb, ldp;
    const float *next; /* fetched meanwhile: of a b k lines of b; of a' b, if it
                        * is added, lines of p, of rows like those of p */
    bool add;
    float *p;
};

/* 1 to ROWS of them. */
#define ROW_COUNTS(X) X(1) X(2) X(3) X(4) X(5) X(6)

/* Instead of a block with few rows, the last two have about as many: products
 * wait for sums that are too few. */
static size_t rows_of_block(size_t left)
{
    if (left > ROWS && left < 2 * ROWS)
        return (left + 1) / 2;
    return left < ROWS ? left : ROWS;
}

/* acc += v b, of a row; sums remain in registers if all indices are constants.
 */
VEC_INLINE void add_row(vec acc[2], float v, vec b0, vec b1)
{
    acc[0] = FMA(SET(v), b0, acc[0]);
    acc[1] = FMA(SET(v), b1, acc[1]);
}

/* ---- a b ---------------------------------------------------------------- */

/* rows: a constant */
VEC_INLINE void block(size_t rows, const struct block *t)
{
    vec acc[ROWS][2];
    size_t lda = t->lda;
    const float *a0 = t->a, *a3 = a0 + 3 * lda, *b = t->b, *next = t->next;

#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++)
        acc[i][0] = acc[i][1] = ZERO;
    for (size_t l = 0; l < t->k; l++, b += PANEL, next += PANEL) {
        vec b0 = LOAD(b), b1 = LOAD(b + LANES);

        _mm_prefetch((const void *)next, _MM_HINT_T1);
#pragma GCC unroll 6
        for (size_t i = 0; i < rows; i++)
            add_row(acc[i], i < 3 ? a0[i * lda] : a3[(i - 3) * lda], b0, b1);
        a0++, a3++;
        /* One register per pointer, not one per row. */
        __asm__("" : "+r"(a0), "+r"(a3));
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++) {
        STORE(t->p + i * t->ldp, acc[i][0]);
        STORE(t->p + i * t->ldp + LANES, acc[i][1]);
    }
}

VEC static void multiply_block(size_t rows, const struct block *t)
{
    switch (rows) {
#define X(r)                                                                   \
    case r:                                                                    \
        block(r, t);                                                           \
        break;
        ROW_COUNTS(X)
#undef X
    default:
        break;
    }
}

/* The first block of a panel fetches the next panel: the next matrix's, after
 * the last. */
static void multiply(const struct ddp__gemm_product *g, float *p, size_t ldp)
{
    const float *b = g->b;
    size_t rows;

    for (size_t j = 0; j < g->n; j += PANEL, b += PANEL * g->k)
        for (size_t i = 0; i < g->m; i += rows) {
            struct block t = {.k = g->k,
                              .a = (const float *)g->a + i * g->lda,
                              .lda = g->lda,
                              .b = b,
                              .next = i == 0 ? b + PANEL * g->k : b,
                              .p = p + i * ldp + j,
                              .ldp = ldp};

            rows = rows_of_block(g->m - i);
            multiply_block(rows, &t);
        }
}

/* ---- a' b --------------------------------------------------------------- */

/* rows: a constant.  Where sums are added to what does not fit into the caches,
 * the next block's are fetched meanwhile: weight gradients of 28x28, 512 to
 * 512, take 58 instead of 68 ms, of 56x56, 256 to 256, 53 instead of 57
 * (wino_square_v8.c has the machine). */
VEC_INLINE void block_t(size_t rows, const struct block *t)
{
    vec acc[ROWS][2];
    const float *a = t->a, *b = t->b;

#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++) {
        const float *p = t->p + i * t->ldp;

        if (t->add)
            _mm_prefetch((const void *)(t->next + i * t->ldp), _MM_HINT_T0);
        acc[i][0] = t->add ? LOAD(p) : ZERO;
        acc[i][1] = t->add ? LOAD(p + LANES) : ZERO;
    }
    for (size_t l = 0; l < t->k; l++, a += t->lda, b += t->ldb) {
        vec b0 = LOAD(b), b1 = LOAD(b + LANES);

#pragma GCC unroll 6
        for (size_t i = 0; i < rows; i++)
            add_row(acc[i], a[i], b0, b1);
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++) {
        STORE(t->p + i * t->ldp, acc[i][0]);
        STORE(t->p + i * t->ldp + LANES, acc[i][1]);
    }
}

VEC static void multiply_block_t(size_t rows, const struct block *t)
{
    switch (rows) {
#define X(r)                                                                   \
    case r:                                                                    \
        block_t(r, t);                                                         \
        break;
        ROW_COUNTS(X)
#undef X
    default:
        break;
    }
}

static void multiply_t(const struct ddp__gemm_product *g, bool add, float *p,
                       size_t ldp)
{
    size_t rows;

    for (size_t j = 0; j < g->n; j += PANEL)
        for (size_t i = 0; i < g->m; i += rows) {
            struct block t = {.k = g->k,
                              .a = (const float *)g->a + i,
                              .lda = g->lda,
                              .b = (const float *)g->b + j,
                              .ldb = g->ldb,
                              .add = add,
                              .p = p + i * ldp + j,
                              .ldp = ldp};

            rows = rows_of_block(g->m - i);
            t.next = i + rows < g->m ? t.p + rows * ldp : p + j + PANEL;
            multiply_block_t(rows, &t);
        }
}

const struct ddp__gemm_products ddp__wino_products_v8 = {
    .panel = PANEL,
    .rows = ROWS,
    .multiply = multiply,
    .multiply_t = multiply_t,
};

#endif
