/* way.h - how a convolution or dense layer is computed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WAY_H
#define DDP_CPU_WAY_H

#include "plan.h"

/* Set the way of a new plan of c, and its patch, gap or infer. */
void ddp__way_choose(struct ddp__plan *p, const struct ddp__call *c);

/* Whether a plan is a forward pass, or a data gradient as such (which is then
 * said), by products of integers. */
bool ddp__way_takes_integers(struct ddp__plan *p);

/* Whether a data gradient can be added to what is there. */
bool ddp__way_adds(const struct ddp__plan *p);

/* The name of libddp's kernel that computes all of it; NULL: primitives do. */
const char *ddp__way_kernel(const struct ddp__plan *p);

#endif
