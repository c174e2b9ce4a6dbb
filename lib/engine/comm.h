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

/* What all ranks know after a step, combined. */
struct ddp__agreed {
    unsigned wishes; /* the union over ranks */
    int64_t count;   /* the sum of spec.count over ranks */
    /* With slices (slices.h): the checks of all slices combined, the scale of
     * the loss (else 0), and the squared norm of the gradients; kept: it came
     * with the checks. */
    double found[DDP__NORMS], scale, squares;
    bool kept;
};

/* Send a wish to the other ranks with every step from now on, until unwish. */
void ddp__comm_wish(struct ddp__engine *e, unsigned wish);
void ddp__comm_unwish(struct ddp__engine *e, unsigned wish);

/* Whether the step ends with an exchange between ranks. */
bool ddp__comm_used(const struct ddp__engine *e);

/* The lanes of a step of so many sub-batches.  Ranks with sub-batches of their
 * own sum their lanes first: each rank then has one piece. */
struct ddp__split ddp__comm_split(const struct ddp__engine *e, int subs);

/* Submit the sum over ranks, into lane 0's vector, after the merges of this
 * rank's lanes.  All ranks call it in the same order: for each sum of the
 * graph, for each bucket, then for the statistics, which carry what the ranks
 * agree on and the error of a rank on which the step failed.  With slices
 * (slices.h) each rank then has its slice of a bucket's sum;
 * ddp__comm_gather(), the last exchange of the step, gets the others, unless
 * the keeper of a bucket has all of the sum and nobody else needs it (shard.h).
 */
int ddp__comm_submit(struct ddp__engine *e, const struct ddp__step *s,
                     struct ddp__total total);

int ddp__comm_gather(struct ddp__engine *e, const struct ddp__step *s);

/* After a failed submission: take part in the step's other exchanges, so that
 * the other ranks learn of the error. */
void ddp__comm_fail(struct ddp__engine *e, const struct ddp__step *s);

#endif
