/* early.h - updates that begin before the decision whether to apply the step
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Without clipping, the update of a bucket needs its gradients and the number
 * of samples, and nothing of the other buckets: it begins at once, and keeps a
 * copy of what it overwrites.  If the gradients turn out not to be finite,
 * these copies undo the step.
 */
#ifndef DDP_EARLY_H
#define DDP_EARLY_H

#include "engine/vector.h"
#include "graph/graph.h"

/* A bucket's weights and optimizer state before the update. */
struct ddp__before {
    struct ddp__handle w, state; /* state: h NULL without one */
    struct ddp__call keep_w, keep_state;
    _Atomic int64_t updated; /* the step in flight that updates it; or -1 */
};

/* The decision on a step in flight. */
struct ddp__verdict {
    struct ddp__engine *e; /* not owned */
    int64_t step, index;   /* of the step; index: among those of the engine */
    bool taken;            /* `scaler` has been copied */
    double scaler[DDP__SCALERS]; /* before the step */
    atomic_int left;             /* vectors that are being undone */
};

struct ddp__early {
    struct ddp__before *kept;     /* by bucket; owned */
    struct ddp__verdict *verdict; /* ring of run_ahead + 1; owned */
    struct ddp__call terms, decide;
    bool begun; /* a step is being submitted */
};

/* If the engine can update early, choose larger buckets and longer forward
 * tasks; call it before parameters are bound and the graph is made. */
int ddp__early_prepare(struct ddp__engine *e);

/* Make e->early if the engine can update early; call it after the updates have
 * been made. */
int ddp__early_new(struct ddp__engine *e);
void ddp__early_free(struct ddp__engine *e);

/* Bytes of the copies. */
double ddp__early_size(const struct ddp__engine *e);

/* Whether the next step updates early.  If so, submit in this order: begin,
 * after the statistics; keep, before the update of each bucket; the decision;
 * end. */
bool ddp__early_used(const struct ddp__engine *e);
int ddp__early_begin(struct ddp__engine *e, const struct ddp__step *s);
int ddp__early_keep(struct ddp__vector_task *t, int bucket);
int ddp__early_end(struct ddp__engine *e, const struct ddp__step *s);

/* After a failed submission: undo the part that was submitted. */
void ddp__early_fail(struct ddp__engine *e);

/* The verdict on the engine's step number `index`. */
struct ddp__verdict *ddp__early_verdict(struct ddp__engine *e, int64_t index);

#endif
