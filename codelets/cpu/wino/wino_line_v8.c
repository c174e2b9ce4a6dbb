/* wino_line_v8.c - transforms of filters of one row or column with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One core of an Intel Xeon with AMX under load, limited to AVX2, 8 images,
 * milliseconds of forward and both gradients by oneDNN 2.6, weights changed
 * before, and in this way:
 *
 *     1x7, 17x17, 128 to 128       4.6  4.5  5.0    2.6  2.6  2.7
 *     7x1, 17x17, 192 to 192      10.3 10.3 11.4    5.5  5.6  5.9
 *     1x3, 8x8, 384 to 384         5.1  5.2  5.2    2.6  2.8  3.2
 *     7x1, 17x17, 32 to 32         .32  .31  .39    .29  .29  .27
 *     1x7, 7x7, 32 to 32           .09  .09  .08    .08  .07  .07
 */
#include "config.h"

#include "wino.h"

#ifdef DDP__X86
#include "cpu/product/gemm_v8.h"
#include "cpu/vector/vec8.h"
#include "wino_line_v8.h"

#define PRODUCTS ddp__wino_products_v8
#include "wino_line_loops.h"

const struct ddp__wino_kind ddp__wino_line_v8[4] = KINDS;

#endif
