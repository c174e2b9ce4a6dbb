/* gemm_v8.h - products of matrices in panels, with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_GEMM_V8_H
#define DDP_CPU_GEMM_V8_H

#include "gemm.h"

/* As ddp__gemm() and ddp__gemm_t(), of floats. */
DDP__X86_ONLY extern const struct ddp__gemm_products ddp__wino_products_v8;

#endif
