/* skinny_v16.h - products with few rows for AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_V16_H
#define DDP_SKINNY_V16_H

#include "cpu/vector/v16.h"
#include "skinny_product.h"

#ifdef DDP__X86
extern const struct ddp__skinny_loops ddp__skinny_v16;
#endif

#endif
