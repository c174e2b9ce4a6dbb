/* defaults.h - the defaults of layers' options
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     &(struct ddp_conv_options){DDP__CONV_DEFAULTS, .stride = 2}
 */
#ifndef DDP_LAYER_DEFAULTS_H
#define DDP_LAYER_DEFAULTS_H

#include "ddp.h"

/* A field may follow that a default has set already. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define DDP__DENSE_DEFAULTS                                                    \
    .struct_size = sizeof(struct ddp_dense_options), .pixels = 1

#define DDP__CONV_DEFAULTS                                                     \
    .struct_size = sizeof(struct ddp_conv_options), .kernel_w = DDP_SAME,      \
    .stride = 1, .stride_w = DDP_SAME, .dilation = 1, .dilation_w = DDP_SAME,  \
    .pad_w = DDP_SAME, .pads = {DDP_SAME, DDP_SAME, DDP_SAME, DDP_SAME},       \
    .groups = 1

#define DDP__NORM_DEFAULTS                                                     \
    .struct_size = sizeof(struct ddp_batch_norm_options), .eps = 1e-5f,        \
    .momentum = 0.1f

#define DDP__POOL_DEFAULTS                                                     \
    .struct_size = sizeof(struct ddp_pool_options), .kernel_w = DDP_SAME,      \
    .stride = DDP_SAME, .stride_w = DDP_SAME, .pad_w = DDP_SAME

/* An option, or the one that it follows. */
static inline int ddp__or_same(int option, int other)
{
    return option == DDP_SAME ? other : option;
}

#endif
