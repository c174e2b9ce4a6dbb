/* depthwise_train.h - depthwise convolutions of training, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_TRAIN_H
#define DDP_DEPTHWISE_TRAIN_H

#include "cpu/conv/shape.h"
#include "cpu/isa.h"

/* Whether the pass, forward or data gradient, of a layer is worthwhile. */
bool ddp__depthwise_train_fits(const struct ddp__conv_shape *s,
                               enum ddp__conv_pass pass);

/* A task of such a layer. */
DDP__X86_ONLY int ddp__depthwise_train_run(const struct ddp__task *t,
                                           const struct ddp__conv_shape *s,
                                           enum ddp__conv_pass pass);

#endif
