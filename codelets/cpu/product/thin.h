/* thin.h - 1x1 convolutions of training where memory limits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_THIN_H
#define DDP_CPU_THIN_H

#include "cpu/conv/shape.h"

/* Whether this is worthwhile, here.  s is a forward pass or, of a 1x1 layer, a
 * data gradient that is described as one (ddp__plan_transpose()). */
bool ddp__thin_fits(const struct ddp__conv_shape *s);

/* The 1x1 layer that has the products of s: what an output sees is a pixel. */
struct ddp__conv_shape ddp__thin_product(const struct ddp__conv_shape *s);

/* y = w * x + bias, or with s->sum that is added to y, with weights by
 * ddp__pixels_pack() of the product. */
int ddp__thin_run(const struct ddp__conv_shape *s, const void *x,
                  const float *packed, void *y);

/* The same of a task of NORM_CONV_FWD. */
int ddp__thin_norm_run(const struct ddp__task *t,
                       const struct ddp__conv_shape *s, const float *packed);

#endif
