/* skinny_wgrad.h - weight gradients of products with few rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_WGRAD_H
#define DDP_SKINNY_WGRAD_H

#include "skinny_product.h"

/* The gradients of all weights, and of the bias behind them if there is one:
 * dw = x dy, or dw += x dy. */
void ddp__skinny_wgrad(const struct ddp__skinny_product *p, const float *x,
                       const float *dy, bool bias, bool add, float *dw);

#endif
