/* footprint.h - the memory that the sub-batches of a step take
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FOOTPRINT_H
#define DDP_FOOTPRINT_H

#include <stdbool.h>

struct ddp__engine;

/* The lanes in one memory: begin..end-1 of the `used` that have samples. */
struct ddp__own_lanes {
    int begin, end, used;
    int in_flight; /* sub-batches that are computed at the same time */
    int rounds;    /* the most sub-batches of a lane */
    bool staged;   /* lanes wait for each other: each holds a sub-batch */
};

/* By bucket: the first and the last segment that writes its gradients; -1: no
 * segment does. */
struct ddp__reach {
    int *first, *last; /* owned */
};

/* False: out of memory; free it in any case. */
bool ddp__reach_new(struct ddp__reach *r, const struct ddp__engine *e);
void ddp__reach_free(struct ddp__reach *r);

struct ddp__footprint {
    double gradients, activations; /* bytes */
};

/* The peak of gradients and activations together, and the share of each at that
 * moment.  DDP_ENOMEM. */
int ddp__footprint(const struct ddp__engine *e, const struct ddp__own_lanes *l,
                   struct ddp__footprint *most);

/* The most sums of finished lanes that exist while `open` others are computed.
 */
int ddp__footprint_sums(const struct ddp__own_lanes *l, int open);

#endif
