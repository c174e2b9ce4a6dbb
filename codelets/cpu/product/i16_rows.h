/* i16_rows.h - what outputs see of an image, as rows of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_I16_ROWS_H
#define DDP_CPU_I16_ROWS_H

#include <stdint.h>

#include "cpu/conv/shape.h"
#include "cpu/isa.h"
#include "patch_pieces.h"

/* The patches of `rows` outputs from `at` on, kh kw c values of bf16 each, as
 * pairs of integers q[rows][ldq] in units of a row (i16_round.h).  Padding is
 * 0; what makes an odd length even is anything, and 0 in a filter. */
DDP__X86_ONLY void ddp__i16_rows(const struct ddp__conv_shape *s,
                                 const uint16_t *x, struct ddp__patch_place at,
                                 size_t rows, uint32_t *q, size_t ldq,
                                 float *unit);

#endif
