/* wino_forward.h - forward passes by products of transformed tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_FORWARD_H
#define DDP_CPU_WINO_FORWARD_H

#include "wino_kind.h"

/* A pass of a layer that ddp__wino_fits(): y (+)= w * x. */
struct ddp__wino_forward {
    const struct ddp__conv_shape *s;
    const struct ddp__wino_map *m;
    const void *x;
    const float *packed; /* ddp__wino_pack(); positions are `step` apart */
    size_t step;
    const float *unit; /* of integers */
    const float *bias; /* or NULL */
    void *y;
};

int ddp__wino_forward(const struct ddp__wino_forward *f);

/* Groups of `want` tiles or somewhat more make `all`: as few as there can be,
 * of about equal size, and multiples of what a product multiplies at a time. */
size_t ddp__wino_group(const struct ddp__wino_kind *kind, size_t all,
                       size_t want);

#endif
