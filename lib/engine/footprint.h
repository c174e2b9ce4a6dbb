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
    bool together; /* these go on at the same speed, since they share a GPU */
};

struct ddp__footprint {
    double gradients, activations; /* bytes */
    double kept; /* of activations that are over, if a memory keeps these for
                    others of the same size */
};

/* The most that gradients and activations take together, with what each has
 * then.  DDP_ENOMEM. */
int ddp__footprint(const struct ddp__engine *e, const struct ddp__own_lanes *l,
                   struct ddp__footprint *most);

/* The most sums of lanes that are done while `open` others are not. */
int ddp__footprint_sums(const struct ddp__own_lanes *l, int open);

#endif
