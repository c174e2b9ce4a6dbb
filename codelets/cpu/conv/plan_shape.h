/* plan_shape.h - the layers that plans compute
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PLAN_SHAPE_H
#define DDP_PLAN_SHAPE_H

#include "plan.h"

/* The layer of a call as the forward pass sees it, for cap samples. */
void ddp__plan_shape_of(const struct ddp__call *c, struct ddp__conv_shape *s);

/* dx of a layer of stride 1 is a forward pass over dy with the filters turned
 * round, which oneDNN 2 does faster than its own data gradient: t is that
 * layer.  Whether s is one. */
bool ddp__plan_transpose(const struct ddp__conv_shape *s,
                         struct ddp__conv_shape *t);

/* Phase (a, b) of the data gradient of s, which has strides: the layer t, of
 * stride 1, and the taps that it has of s.  False: no tap or pixel. */
bool ddp__plan_phase(const struct ddp__conv_shape *s, int a, int b,
                     struct ddp__conv_shape *t, struct ddp__taps *taps);

/* What is computed for n samples: transposed where it is, as one image where
 * there is a gap. */
struct ddp__conv_shape ddp__plan_shape(const struct ddp__plan *p, int n);

#endif
