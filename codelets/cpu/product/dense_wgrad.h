/* dense_wgrad.h - weight gradients of dense layers of many samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_DENSE_WGRAD_H
#define DDP_CPU_DENSE_WGRAD_H

#include "cpu/conv/shape.h"

/* Whether this pays for a layer of which dense.c knows that it is a product. */
bool ddp__dense_wgrad_fits(const struct ddp__conv_shape *s);

/* dw (+)= dy' x */
int ddp__dense_wgrad_run(const struct ddp__conv_shape *s, const void *x,
                         const void *dy, bool accumulate, float *dw);

#endif
