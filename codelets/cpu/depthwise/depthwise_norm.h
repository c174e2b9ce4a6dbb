/* depthwise_norm.h - gradients of a batch norm before a depthwise convolution
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_NORM_H
#define DDP_DEPTHWISE_NORM_H

#include "cpu/conv/shape.h"
#include "cpu/isa.h"

/* Whether the data gradient of a layer that depthwise_train.h fits may be made
 * for a norm. */
bool ddp__depthwise_norm_fits(const struct ddp__conv_shape *s);

/* A task of NORM_CONV_BWD_X for such a layer. */
DDP__X86_ONLY int ddp__depthwise_norm_run(const struct ddp__task *t,
                                          const struct ddp__conv_shape *s);

#endif
