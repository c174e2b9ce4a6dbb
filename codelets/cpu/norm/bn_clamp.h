/* bn_clamp.h - a batch norm that another kernel computes as it reads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     min(max((x - mean) a + shift, low), high)
 *
 * with the statistics of a task: the activation is none, relu or relu6.
 */
#ifndef DDP_BN_CLAMP_H
#define DDP_BN_CLAMP_H

#include "cpu/isa.h"
#include "ops.h"

/* Parameters of each channel, and what the activation lets through. */
struct ddp__bn_clamp {
    const float *mean, *a, *shift;
    float low, high;
};

/* Whether an activation does no more than this. */
bool ddp__bn_clamps(enum ddp_act act);

/* The norm that a task of NORM_CONV_* has for x, in a room of so many bytes. */
size_t ddp__bn_clamp_size(const struct ddp__task *t);
struct ddp__bn_clamp ddp__bn_clamp_of(const struct ddp__task *t, void *room);

#endif
