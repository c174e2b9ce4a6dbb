/* depthwise.h - depthwise convolutions of small images, in loops over channels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_H
#define DDP_DEPTHWISE_H

#include "cpu/conv/shape.h"

/* Whether each channel of s has one filter, and makes one channel. */
bool ddp__depthwise_fits(const struct ddp__conv_shape *s);

/* A task of such a layer, whichever pass. */
int ddp__depthwise_run(const struct ddp__task *t,
                       const struct ddp__conv_shape *s,
                       enum ddp__conv_pass pass);

#endif
