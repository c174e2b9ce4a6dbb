/* taps_wgrad.h - weight gradients of images of few pixels, without padding
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_TAPS_WGRAD_H
#define DDP_CPU_TAPS_WGRAD_H

#include "cpu/conv/shape.h"

/* See taps.h.  bias.h has the gradient of a bias. */
int ddp__taps_wgrad(const struct ddp__conv_shape *s, const void *x,
                    const void *dy, bool accumulate, float *dw);

#endif
