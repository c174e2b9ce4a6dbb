/* depthwise_infer.h - depthwise convolutions of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_INFER_H
#define DDP_DEPTHWISE_INFER_H

#include "onednn.h"

/* Whether this is worth while, here, for a layer of inference. */
bool ddp__depthwise_infer_fits(const struct ddp__dnn_shape *s);

/* Weights (c, kh, kw) by vectors of channels, then taps. */
size_t ddp__depthwise_infer_packed_size(const struct ddp__dnn_shape *s);
void ddp__depthwise_infer_pack(const struct ddp__dnn_shape *s, const float *w,
                               float *to);

/* y = act(w * x + bias).  A result has the same bits in any batch. */
int ddp__depthwise_infer_run(const struct ddp__dnn_shape *s, const float *x,
                             const float *packed, const float *bias, float *y);

#endif
