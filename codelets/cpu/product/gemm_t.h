/* gemm_t.h - products of columns of matrices
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_GEMM_T_H
#define DDP_CPU_GEMM_T_H

#include "cpu/isa.h"
#include "gemm.h"

/* p[m][n] (+)= sum over k of a[k][m] b[k][n]; m a multiple of 8, n of 16. */
DDP__X86_ONLY void ddp__gemm_t(const struct ddp__gemm_product *g, bool add,
                               float *p, size_t ldp);

/* Both products with AVX-512. */
DDP__X86_ONLY extern const struct ddp__gemm_products ddp__wino_products_v16;

#endif
