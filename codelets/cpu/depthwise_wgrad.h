/* depthwise_wgrad.h - weight gradients of depthwise 5x5 layers, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_WGRAD_H
#define DDP_DEPTHWISE_WGRAD_H

#include "onednn.h"

/* Whether a layer is one of these, and the processor can. */
bool ddp__depthwise_wgrad_fits(const struct ddp__dnn_shape *s);

/* A task of the weight gradient of such a layer. */
int ddp__depthwise_wgrad_run(const struct ddp__task *t,
                             const struct ddp__dnn_shape *s);

#endif
