/* dense.h - dense layers of more samples than skinny.h has
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * So are 1x1 convolutions of few pixels, whose rows are the pixels of all
 * images.
 */
#ifndef DDP_CPU_DENSE_H
#define DDP_CPU_DENSE_H

#include "cpu/conv/shape.h"

/* Whether a pass of s is one of these products, in f32, here. */
bool ddp__dense_fits(const struct ddp__conv_shape *s, enum ddp__conv_pass pass);

/* A forward pass: w is followed by the bias, if the layer has one. */
int ddp__dense_fwd(const struct ddp__conv_shape *s, const float *x,
                   const float *w, float *y);
/* dx is written or, where s says so, added to. */
int ddp__dense_bwd_x(const struct ddp__conv_shape *s, const float *dy,
                     const float *w, float *dx);

#endif
