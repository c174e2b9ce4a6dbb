/* wino_weight.h - filters and their gradients in Winograd's domain
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_WEIGHT_H
#define DDP_CPU_WINO_WEIGHT_H

#include <stdint.h>

#include "cpu/isa.h"
#include "wino_kind.h"

/* Columns of the panel that begins with column `first`: those that products of
 * this kind have, or the 16 that are left. */
size_t ddp__wino_panel(const struct ddp__wino_kind *kind, size_t columns,
                       size_t first);

/* A panel of the filters f (o, taps, c) as u[pos][rows][columns], positions
 * step apart: rows are channels, and columns filters from the first on; of the
 * data gradient: turned round, rows are filters and columns channels. */
DDP__X86_ONLY void ddp__wino_weights(const struct ddp__wino_kind *kind,
                                     const struct ddp__wino_filters *f,
                                     size_t columns, size_t first, size_t step,
                                     float *u);

/* The same panel of 3x3 filters among all columns, as pairs of integers of two
 * rows, q[pos][rows / 2 columns], and the units of columns, unit[pos][columns].
 */
DDP__X86_ONLY void ddp__wino_weights_i16(const struct ddp__wino_filters *f,
                                         size_t columns, size_t first,
                                         uint32_t *q, float *unit);

/* rows x cols of dw (o, taps, c), of which dw is the first, from
 * u[pos][rows][cols]: written or added. */
DDP__X86_ONLY void ddp__wino_gradient(const struct ddp__wino_kind *kind,
                                      const float *u, size_t rows, size_t cols,
                                      size_t c, bool accumulate, float *dw);

/* Both for 3x3, of 16 columns and of one filter; see wino_kind.h. */
void ddp__wino_weigh_square(const struct ddp__wino_filters *f, size_t column,
                            size_t width, size_t step, float *u);
void ddp__wino_gradient_square(const float *u, size_t step, size_t len,
                               size_t c, bool accumulate, float *dw);

#endif
