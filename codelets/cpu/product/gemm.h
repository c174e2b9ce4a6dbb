/* gemm.h - products of matrices in panels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_GEMM_H
#define DDP_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu/isa.h"

enum {
    DDP__GEMM_VECTOR = 16, /* columns are multiples of it */
    DDP__GEMM_PANEL = 32,
    DDP__GEMM_ROWS = 14, /* that are multiplied by a panel at a time */
    DDP__GEMM_SKEW = 16, /* floats after a row, against equal cache sets */
};

/* m x n sums of k products each, of floats; or, where units are given, of k
 * pairs of 16-bit integers (int16_t[2]), which take the places of floats.
 * Steps from row to row are in floats or pairs. */
struct ddp__gemm_product {
    size_t m, n, k;
    const void *a, *b;
    size_t lda, ldb;
    const float *row, *col; /* units of rows and columns of p, or NULL */
};

/* What a product of floats does for operands that come from memory. */
struct ddp__gemm_stream {
    const float *bias; /* [n], what sums begin with; NULL: 0 */
    const float *next; /* rows like those of a, fetched meanwhile */
    bool past;         /* p goes past the caches, in whole lines of 64 bytes */
};

/* Lines of a matrix to fetch into the second-level cache meanwhile: 2^shift of
 * each row, and rows are `pitch` floats apart. */
struct ddp__gemm_fetch {
    const float *from;
    size_t lines, pitch; /* lines: of all rows */
    unsigned shift;
};

/* What sums of floats become: p = sum + bias (+ p), and at least low and at
 * most high. */
struct ddp__gemm_finish {
    const float *bias; /* [columns] */
    size_t columns;    /* that are stored: n, or up to 15 fewer */
    float low, high;
    bool add;          /* p */
    bool past;         /* p goes past the caches, in whole lines of 64 bytes */
    const float *next; /* rows like those of a, fetched meanwhile; NULL: the
                        * next panel of b */
    ptrdiff_t later;   /* floats from p to what is added later, fetched too */
    const struct ddp__gemm_fetch *fetch; /* in place of these; or NULL */
};

/* p[m][n] = sum over k of a[m][k] b[k][n]; n a multiple of 16, b in panels of
 * 32 columns and, at the end, of 16. */
DDP__X86_ONLY void ddp__gemm(const struct ddp__gemm_product *g, float *p,
                             size_t ldp);

/* The same, of floats, for one panel; rows are divided into as few blocks as
 * there can be, ddp__gemm_blocks(), two of them evenly, and while block i is
 * multiplied k lines from next[i] on are fetched into the second-level cache.
 */
DDP__X86_ONLY size_t ddp__gemm_blocks(size_t rows);
DDP__X86_ONLY void ddp__gemm_ahead(const struct ddp__gemm_product *g,
                                   const float *const *next, float *p,
                                   size_t ldp);

/* The same, of floats; columns up to a multiple of 16 are stored. */
DDP__X86_ONLY void ddp__gemm_stream(const struct ddp__gemm_product *g,
                                    const struct ddp__gemm_stream *m, float *p,
                                    size_t ldp);

/* As ddp__gemm(), of floats, with what follows. */
DDP__X86_ONLY void ddp__gemm_finish(const struct ddp__gemm_product *g,
                                    const struct ddp__gemm_finish *f, float *p,
                                    size_t ldp);

/* Where sums of integers go as bf16: row i to y[i]. */
struct ddp__gemm_round {
    uint16_t *const *y;
    size_t at, columns; /* columns `at` to before at + columns, 1 to 32 */
    bool past; /* they go past the caches, in whole lines of 64 bytes */
};

/* As ddp__gemm(), of integers, for one panel; needs AVX512_BF16. */
DDP__X86_ONLY void ddp__gemm_round(const struct ddp__gemm_product *g,
                                   const struct ddp__gemm_round *r);

/* Products with vectors of one length. */
struct ddp__gemm_products {
    size_t panel; /* columns of a panel of weights; the last one may have 16 */
    size_t rows;  /* that are multiplied at a time */
    void (*multiply)(const struct ddp__gemm_product *g, float *p, size_t ldp);
    void (*multiply_t)(const struct ddp__gemm_product *g, bool add, float *p,
                       size_t ldp);
};

#endif
