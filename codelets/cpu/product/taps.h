/* taps.h - convolutions of images of few pixels, without padding
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A tap joins pairs of a pixel of x and a pixel of y.  Each pair is a product
 * of matrices over all images n:
 *
 *     y[n][p]  = sum over taps t of x[n][q] w[t]'     q: what t sees for p
 *     dx[n][q] = sum over taps t of dy[n][p] w[t]
 *     dw[t]    = sum over pairs of t of dy[][p]' x[][q]
 */
#ifndef DDP_CPU_TAPS_H
#define DDP_CPU_TAPS_H

#include "cpu/conv/shape.h"

/* Whether this is worthwhile, here. */
bool ddp__taps_fits(const struct ddp__conv_shape *s, enum ddp__conv_pass pass);

/* Forward pass (from x to y) and data gradient (from dy to dx) of a layer;
 * bias: NULL where there is none. */
int ddp__taps_run(const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                  const float *in, const float *w, const float *bias,
                  float *out);

#endif
