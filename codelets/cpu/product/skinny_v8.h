/* skinny_v8.h - products with few rows for AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_V8_H
#define DDP_SKINNY_V8_H

#include "skinny_product.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define DDP__SKINNY_V8 1
extern const struct ddp__skinny_loops ddp__skinny_v8;
#endif

#endif
