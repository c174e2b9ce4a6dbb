/* conv.h - plans of convolutions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_CONV_H
#define DDP_CUDA_CONV_H

#include "ops.h"

int ddp__cuda_conv_prepare(const struct ddp__call *c, void **plan);

#endif
