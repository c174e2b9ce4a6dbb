/* pool_bwd_v16.h - gradients of maxima and means over windows by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POOL_BWD_V16_H
#define DDP_POOL_BWD_V16_H

#include "cpu/isa.h"
#include "pool.h"

/* dx of n images, index not wide. */
DDP__X86_ONLY int ddp__pool_gather_v16(const struct ddp__gather *s, int n,
                                       void *dx);

#endif
