/* slices.h - a step that ranks decide on by their slices of the sums
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * After the first half of an exchange a rank has the sum of its slice of each
 * bucket.  Where gradients are not clipped, all that the decision has to know
 * of them is whether they are finite: each rank looks at its slices, and tells
 * the others with its statistics.  So the second half of the exchanges need not
 * be over: the next forward pass begins as soon as its first layers have come.
 */
#ifndef DDP_SLICES_H
#define DDP_SLICES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ops.h"
#include "runtime/buffer.h"

struct ddp__engine;
struct ddp__step;

struct ddp__slices {
    struct ddp__slice {
        struct ddp__call check;   /* of what of it this rank has the sum of */
        struct ddp__handle found; /* h NULL: it has nothing of that */
        double memory[DDP__NORMS];
    } * slice;              /* by bucket; owned */
    struct ddp__span *span; /* of all checks; owned */
    struct ddp__handle one, stats;
    double one_memory[DDP__STATS];   /* with a divisor of 1 */
    double stats_memory[DDP__STATS]; /* of the last step that was agreed on */
    bool copied; /* those of the step that is being submitted are there */
    struct ddp__call agree, note;
};

/* If the engine is to have them: e->slices.  After its updates are made. */
int ddp__slices_new(struct ddp__engine *e);
void ddp__slices_free(struct ddp__engine *e);

/* Whether a step is decided so; all ranks say the same. */
bool ddp__slices_used(const struct ddp__engine *e, const struct ddp__step *s);

/* Submit the look at this rank's slices, once their sums are submitted; the
 * decision, after the news; and then that the norm, which is for reports only,
 * is noted. */
int ddp__slices_check(struct ddp__engine *e, const struct ddp__step *s);
int ddp__slices_agree(struct ddp__engine *e, const struct ddp__step *s);
/* The statistics of the step that is being submitted.  Lane 0's are for the
 * next step's, which would wait for what reads them after the last all-gather.
 */
struct ddp__handle *ddp__slices_stats(struct ddp__engine *e);
void ddp__slices_end(struct ddp__engine *e); /* it is submitted */
int ddp__slices_note(struct ddp__engine *e, const struct ddp__step *s);

/* Have what has been found opened, in main memory: ready(arg) is called for
 * each of *left, which counts them first.  Close it. */
void ddp__slices_open(struct ddp__engine *e, atomic_int *left,
                      void (*ready)(void *arg), void *arg);
void ddp__slices_close(struct ddp__engine *e);

/* Add what this rank has found, once open; or what another one has. */
void ddp__slices_found(const struct ddp__engine *e, double all[DDP__NORMS]);
void ddp__slices_join(double all[DDP__NORMS], const double found[DDP__NORMS]);

#endif
