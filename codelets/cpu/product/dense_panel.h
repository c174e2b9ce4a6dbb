/* dense_panel.h - matrices in panels for products of dense layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_DENSE_PANEL_H
#define DDP_CPU_DENSE_PANEL_H

#include <stddef.h>

#include "cpu/isa.h"

/* The panels that gemm.h multiplies with: 32 columns, one row after the
 * other, of rows x columns at from; the last has 16 where no more are left.
 * Zeros fill the last vector. */
DDP__X86_ONLY void ddp__dense_copy(const float *from, size_t ld, size_t rows,
                                   size_t columns, float *to);

/* The same of columns x rows at from, turned. */
DDP__X86_ONLY void ddp__dense_turn(const float *from, size_t ld, size_t rows,
                                   size_t columns, float *to);

/* to[j][i] = from[i][j], rows x columns at from.  Rows at `to` are ldt apart,
 * and zeros fill their last vector. */
DDP__X86_ONLY void ddp__dense_transpose(const float *from, size_t ld,
                                        size_t rows, size_t columns, float *to,
                                        size_t ldt);

#endif
