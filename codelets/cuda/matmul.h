/* matmul.h - a product of matrices by cuBLASLt, for one number of samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MATMUL_H
#define DDP_MATMUL_H

#include "dnn_plan.h"
#include "worker.h"

struct ddp__cuda_matmul;

/* d = op(a) op(b), columns first, as BLAS has it: d is m x n, the sum over k.
 * A matrix has as many rows as its leading dimension. */
struct ddp__cuda_product {
    enum ddp_dtype type, type_d; /* of a and b; of d */
    bool transpose_a, transpose_b;
    size_t m, n, k;
    bool bias, relu; /* d = act(.. + bias[m]), bias in type_d */
    bool tf32;
    size_t align_a, align_b, align_d; /* bytes, powers of 2 */
};

int ddp__cuda_matmul_new(const struct ddp__cudnn_target *t,
                         const struct ddp__cuda_product *p, size_t limit,
                         struct ddp__cuda_matmul **out);
void ddp__cuda_matmul_free(struct ddp__cuda_matmul *m);
size_t ddp__cuda_matmul_workspace(const struct ddp__cuda_matmul *m);

/* Also d += with accumulate. */
int ddp__cuda_matmul_run(const struct ddp__cuda_matmul *m,
                         struct ddp__cuda_worker *w, const void *a,
                         const void *b, const void *bias, void *d,
                         bool accumulate, void *workspace);

#endif
