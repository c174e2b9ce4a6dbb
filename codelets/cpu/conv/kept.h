/* kept.h - how much memory copies of weights take, and packed gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_KEPT_H
#define DDP_CPU_KEPT_H

#include "ops.h"

/* Bytes of one version of the weights of a convolution or dense layer, packed,
 * and with a norm's factors. */
size_t ddp__cpu_conv_kept(const struct ddp__call *c, const void *plan);

/* Of these, bytes that processes may share (0: none), and that they do. */
size_t ddp__cpu_conv_common(const struct ddp__call *c, const void *plan);
void ddp__cpu_conv_share(void *plan, void *memory);

/* Bytes of scratch for a call: of oneDNN, and of weights and gradients on their
 * way to or from its layout. */
size_t ddp__cpu_conv_room(const struct ddp__call *c, const void *plan,
                          bool adds);

#endif
