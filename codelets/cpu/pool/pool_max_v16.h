/* pool_max_v16.h - maximum over windows by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POOL_MAX_V16_H
#define DDP_POOL_MAX_V16_H

#include "cpu/isa.h"
#include "pool.h"

/* Outputs of n images x, positions as bytes. */
DDP__X86_ONLY int ddp__max_pool_v16(const struct ddp__pooling *g, int n,
                                    const void *x, void *y, uint8_t *index);

#endif
