/* thin.h - 1x1 convolutions of training where memory limits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_THIN_H
#define DDP_CPU_THIN_H

#include "cpu/conv/shape.h"

/* Whether this is worthwhile, here.  s is a forward pass, or a data gradient
 * that is described as one (ddp__plan_transpose()). */
bool ddp__thin_fits(const struct ddp__conv_shape *s);

/* y = w * x + bias, with weights by ddp__pixels_pack(). */
int ddp__thin_run(const struct ddp__conv_shape *s, const float *x,
                  const float *packed, float *y);

/* The same of a task of NORM_CONV_FWD. */
int ddp__thin_norm_run(const struct ddp__task *t,
                       const struct ddp__conv_shape *s, const float *packed);

#endif
