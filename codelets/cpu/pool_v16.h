/* pool_v16.h - maximum and mean over windows by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POOL_V16_H
#define DDP_POOL_V16_H

#include "pool.h"
#include "unit_v16.h"

/* Outputs of n images x, positions as bytes. */
int ddp__max_pool_v16(const struct ddp__pooling *g, int n, const void *x,
                      void *y, uint8_t *index);
int ddp__mean_pool_v16(const struct ddp__pooling *g, const struct ddp__pool *p,
                       int n, const void *x, void *y);

#endif
