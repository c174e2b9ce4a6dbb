/* step.h - one step, submitted
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STEP_H
#define DDP_STEP_H

#include "ddp.h"

/* One step: sub-batches of these sizes, sub-batch s in lane s mod lanes. */
struct ddp__step {
    int64_t number;
    int subs;
    const int *n;  /* subs sizes, 1..cap */
    uint64_t seed; /* of dropout */
    float lr;
    float average;  /* see ddp__ema_share() */
    float momentum; /* of the update; 0: the optimizer's */
    bool update;    /* else gradients are kept for ddp__engine_gradient() */
    bool keep;      /* also after the update */
    uint64_t
        first; /* number of the first sub-batch, which is passed to fill() */
};

struct ddp__engine;
struct ddp__task_group;

/* Submit a step; blocks while run_ahead steps are unfinished. */
int ddp__engine_step(struct ddp__engine *e, const struct ddp__step *s);

/* Submit the update of the last step, which is done and has kept its gradients.
 * The step has the same number again when the update is done. */
int ddp__engine_update(struct ddp__engine *e, const struct ddp__step *s);

/* Submit a step of nothing but the update, with sums of gradients g, bucket
 * after bucket, and their divisor.  All steps before are done. */
int ddp__engine_apply(struct ddp__engine *e, const struct ddp__step *s,
                      const float *g, double divisor);

/* INFER: submit the graph for n samples in a lane, whose number is passed to
 * fill() and output().  Its tasks belong to group.  Only one thread may call
 * this at a time. */
int ddp__engine_infer(struct ddp__engine *e, int lane, int n,
                      struct ddp__task_group *group);

/* PULL: submit the forward half or the backward half of the graph for subs
 * sub-batches, one per lane.  ddp__engine_wait_all() waits for it.  After a
 * failure nothing is left running. */
int ddp__engine_half(struct ddp__engine *e, const int *n, int subs,
                     bool backward);

#endif
