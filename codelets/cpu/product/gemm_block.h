/* gemm_block.h - a block of rows times a panel of columns
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_GEMM_BLOCK_H
#define DDP_CPU_GEMM_BLOCK_H

#include "gemm.h"

/* What is multiplied. */
enum ddp__gemm_kind {
    DDP__GEMM_FLOATS,
    DDP__GEMM_INTEGERS,
    DDP__GEMM_ROUND,  /* integers, whose products become bf16 */
    DDP__GEMM_STREAM, /* floats, whose products go to memory, too */
    DDP__GEMM_FINISH, /* floats, and what follows */
    DDP__GEMM_FETCH,  /* so, and lines of a matrix are fetched */
    DDP__GEMM_KINDS
};

/* A block of p, its factors, and what is fetched meanwhile. */
struct ddp__gemm_block {
    size_t k;
    const float *a, *b, *next; /* next: k lines are fetched from there on */
    size_t lda, ldp;
    const float *row, *col; /* units of INTEGERS and ROUND */
    const float *bias;      /* of STREAM; NULL: 0 */
    bool past;
    const struct ddp__gemm_finish *finish; /* of FINISH and FETCH */
    const struct ddp__gemm_round *round;   /* of ROUND */
    size_t first;                          /* so: the first row */
    size_t column;                         /* its first */
    size_t line;                           /* of FETCH: the first of k */
    float *p;
};

/* Multiply 1 to DDP__GEMM_ROWS rows by half a panel, or by a whole one. */
typedef void ddp__gemm_block_f(size_t rows, const struct ddp__gemm_block *t);
extern ddp__gemm_block_f *const ddp__gemm_block[DDP__GEMM_KINDS][2];

#endif
