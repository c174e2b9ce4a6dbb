/* wino_gemm.h - products of matrices in panels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_GEMM_H
#define DDP_CPU_WINO_GEMM_H

#include <stdbool.h>
#include <stddef.h>

/* p[m][n] = sum over k of a[m][k] b[k][n]; n a multiple of 16, b in panels of
 * 32 columns and, at the end, of 16. */
void ddp__wino_gemm(size_t m, size_t n, size_t k, const float *a, size_t lda,
                    const float *b, float *p, size_t ldp);

/* p[m][n] (+)= sum over k of a[k][m] b[k][n]; m a multiple of 8, n of 16. */
void ddp__wino_gemm_t(size_t m, size_t n, size_t k, const float *a, size_t lda,
                      const float *b, size_t ldb, bool add, float *p,
                      size_t ldp);

#endif
