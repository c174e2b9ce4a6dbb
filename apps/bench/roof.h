/* roof.h - how fast a GPU could train a network at best
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ROOF_H
#define ROOF_H

#include <stdbool.h>

#include "ddp.h"

/* A device, or several that share the work. */
struct roof {
    double flops;   /* a second; 2 per multiply-add */
    double bytes;   /* a second, read and written, of its memory */
    char base[160]; /* the source of these figures */
};

/* Of `count` GPUs like this one, in a type of activations. */
void roof_of(struct roof *r, const struct ddp_gpu_info *gpu, int count,
             enum ddp_dtype type);

/* What training on one image takes at least, layer by layer. */
struct roof_time {
    double element;          /* bytes of one of an activation, */
    double sub_batch, batch; /* images of these: set by the caller */
    double seconds, flops, bytes;
    bool begun; /* the first layer's input has no gradient */
};

void roof_add(struct roof_time *t, const struct roof *r,
              const struct ddp_layer_info *l);

#endif
