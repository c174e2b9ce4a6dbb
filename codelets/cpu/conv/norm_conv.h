/* norm_conv.h - convolutions that normalise what they read, by CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_NORM_CONV_H
#define DDP_CPU_NORM_CONV_H

#include "plan.h"

/* Whether the way of a plan of NORM_CONV_* can. */
bool ddp__norm_conv_can(const struct ddp__plan *p);

/* Whether such a call would have such a way, and be worthwhile. */
bool ddp__cpu_conv_normalises(const struct ddp__call *c);

#endif
