/* wino_line.c - transforms of filters of one row or column, 16 channels at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tiles lie along the filters: a row or column of 17 pixels is six tiles of
 * three, for 54 instead of 119 products.  wino.h has the errors, wino.c times
 * of layers: a fifth of them are transforms.  Inception v3 of 8 images in two
 * lanes on two Zen 5 cores takes 1.02 instead of 1.18 s a step, under load.
 */
#include "config.h"

#include "wino.h"

#ifdef DDP__X86
#include "cpu/product/gemm_t.h"
#include "cpu/vector/vec16.h"
#include "wino_line.h"

#define PRODUCTS ddp__wino_products_v16
#include "wino_line_loops.h"

const struct ddp__wino_kind ddp__wino_line[4] = KINDS;

#endif
