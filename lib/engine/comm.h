/* comm.h - the gradients and statistics of a step, summed over ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COMM_H
#define DDP_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/lanes.h"
#include "engine/total.h"

struct ddp__engine;
struct ddp__step;

enum { DDP__WISH_STOP = 1, DDP__WISH_CHECKPOINT = 2 };

/* What the ranks tell each other at the end of a step, all together. */
struct ddp__agreed {
    unsigned wishes; /* of any rank */
    int64_t count;   /* of all ranks: the sum of spec.count */
    /* Where slices are used (slices.h): what is not finite in all of them, the
     * scale of the loss (else 0), and the squared norm of the gradients. */
    double found[DDP__NORMS], scale, squares;
};

/* Tell the others with the next step that ends; until unwish, with each. */
void ddp__comm_wish(struct ddp__engine *e, unsigned wish);
void ddp__comm_unwish(struct ddp__engine *e, unsigned wish);

/* Whether the step ends with an exchange between ranks. */
bool ddp__comm_used(const struct ddp__engine *e);

/* The pieces of a step of so many sub-batches.  Own lanes are all summed by
 * their rank: what is left is a piece each. */
struct ddp__split ddp__comm_split(const struct ddp__engine *e, int subs);

/* Submit the sum over ranks, into lane 0's, once the local pieces are merged:
 * of each sum of the graph, then of each bucket, then of the statistics, with
 * which goes what the ranks agree on, and whether the step failed on one of
 * them.  Where slices are used (slices.h), each rank then has its slice of a
 * bucket, and gets the others by comm_gather(), which comes last. */
int ddp__comm_submit(struct ddp__engine *e, const struct ddp__step *s,
                     struct ddp__total total);

int ddp__comm_gather(struct ddp__engine *e, const struct ddp__step *s);

/* The submission of a step has failed here: take part in what is left of its
 * exchanges, so that the other ranks hear of it. */
void ddp__comm_fail(struct ddp__engine *e, const struct ddp__step *s);

#endif
