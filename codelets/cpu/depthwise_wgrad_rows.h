/* depthwise_wgrad_rows.h - weight gradients of depthwise 3x3 layers, by rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_DEPTHWISE_WGRAD_ROWS_H
#define DDP_CPU_DEPTHWISE_WGRAD_ROWS_H

#include "onednn.h"

/* Whether this is worthwhile, here. */
bool ddp__depthwise_wgrad_rows_fits(const struct ddp__dnn_shape *s);

/* Needs AVX-512. */
int ddp__depthwise_wgrad_rows_run(const struct ddp__dnn_shape *s, const void *x,
                                  const void *dy, bool accumulate, float *dw);

#endif
