/* pointwise.h - 1x1 convolutions of inference, with what follows them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POINTWISE_H
#define DDP_POINTWISE_H

#include "onednn.h"

/* Whether this is worth while, here, for a layer of inference. */
bool ddp__pointwise_fits(const struct ddp__dnn_shape *s);

/* Weights (o, c) as panels. */
size_t ddp__pointwise_packed_size(const struct ddp__dnn_shape *s);
void ddp__pointwise_pack(const struct ddp__dnn_shape *s, const float *w,
                         float *to);

/* y = act(w * x + bias (+ y)).  A result has the same bits in any batch. */
int ddp__pointwise_run(const struct ddp__dnn_shape *s, const float *x,
                       const float *packed, const float *bias, float *y);

#endif
