/* skinny_blocks.h - data gradients of products with few rows, for AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_BLOCKS_H
#define DDP_SKINNY_BLOCKS_H

#include "skinny_product.h"

/* dx += dy w for len columns of dx under a tap, which begin where w and dx do;
 * for AVX-512 only. */
void ddp__skinny_blocks(const struct ddp__skinny_product *p,
                        const struct ddp__skinny_tap *t, const float *w,
                        const float *dy, size_t len, float *dx);

#endif
