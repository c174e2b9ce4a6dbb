/* footprint.h - what the sub-batches of a step hold in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FOOTPRINT_H
#define DDP_FOOTPRINT_H

#include <stdbool.h>

struct ddp__engine;

/* The lanes that a memory has: begin..end-1 of `used`, which have samples. */
struct ddp__own_lanes {
    int begin, end, used;
    int in_flight; /* sub-batches that are computed at a time */
    int rounds;    /* the most sub-batches of a lane */
    bool staged;   /* lanes wait for each other: all have one in memory */
};

/* By bucket: the first and the last segment that writes its gradients; -1:
 * there is none. */
struct ddp__reach {
    int *first, *last; /* owned */
};

/* False: no memory; to be freed all the same. */
bool ddp__reach_new(struct ddp__reach *r, const struct ddp__engine *e);
void ddp__reach_free(struct ddp__reach *r);

struct ddp__footprint {
    double gradients, activations; /* bytes */
};

/* The most that gradients and activations take together, with what each has
 * then.  DDP_ENOMEM. */
int ddp__footprint(const struct ddp__engine *e, const struct ddp__own_lanes *l,
                   struct ddp__footprint *most);

/* The most sums of lanes that are done while `open` others are not. */
int ddp__footprint_sums(const struct ddp__own_lanes *l, int open);

#endif
