/* thin_rows.h - what outputs see of an image of bf16, as rows of f32
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_THIN_ROWS_H
#define DDP_CPU_THIN_ROWS_H

#include <stdint.h>

#include "cpu/conv/shape.h"
#include "cpu/isa.h"
#include "patch_pieces.h"

/* The patches of `rows` outputs from the first on, of kh kw c values each.
 * Padding is 0. */
DDP__X86_ONLY void ddp__thin_rows(const struct ddp__conv_shape *s,
                                  const uint16_t *x, size_t first, size_t rows,
                                  size_t values, float *to);

#endif
