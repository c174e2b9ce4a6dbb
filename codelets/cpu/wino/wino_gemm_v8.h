/* wino_gemm_v8.h - products of matrices in panels, with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_GEMM_V8_H
#define DDP_CPU_WINO_GEMM_V8_H

#include "wino_kind.h"

/* As ddp__wino_gemm() and ddp__wino_gemm_t(), of floats. */
extern const struct ddp__wino_products ddp__wino_products_v8;

#endif
