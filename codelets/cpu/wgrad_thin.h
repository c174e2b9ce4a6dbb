/* wgrad_thin.h - weight gradients of layers with few channels on one side
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     dw[o][c] (+)= sum over pixels p of dy[p][o] x[p][c]
 *
 * of 1x1 layers, and the same of the three pixels in a row that a 3x3 layer of
 * three channels sees.  Needs AVX-512.
 */
#ifndef DDP_CPU_WGRAD_THIN_H
#define DDP_CPU_WGRAD_THIN_H

#include "onednn.h"

/* Whether this is worthwhile, here. */
bool ddp__wgrad_thin_fits(const struct ddp__dnn_shape *s);

int ddp__wgrad_thin_run(const struct ddp__dnn_shape *s, const void *x,
                        const void *dy, bool accumulate, float *dw);

#endif
