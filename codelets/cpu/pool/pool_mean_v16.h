/* pool_mean_v16.h - mean over windows by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POOL_MEAN_V16_H
#define DDP_POOL_MEAN_V16_H

#include "cpu/isa.h"
#include "pool.h"

/* Outputs of n images x. */
DDP__X86_ONLY int ddp__mean_pool_v16(const struct ddp__pooling *g,
                                     const struct ddp__pool *p, int n,
                                     const void *x, void *y);

#endif
