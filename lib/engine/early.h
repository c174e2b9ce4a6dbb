/* early.h - updates that begin before it is known whether the step is applied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Where gradients are not clipped, the update of a bucket needs its sum, how
 * many samples there were, and nothing of the other buckets.  It keeps what it
 * changes.  When all sums are known, a step that is not applied is undone.
 */
#ifndef DDP_EARLY_H
#define DDP_EARLY_H

#include "engine/vector.h"
#include "graph/graph.h"

/* Of a bucket, before its update. */
struct ddp__before {
    struct ddp__handle w, state; /* state: as the bucket's; none: h NULL */
    struct ddp__call keep_w, keep_state;
    _Atomic int64_t updated; /* the step that updates it; -1: it is over */
};

/* Of a step that is under way. */
struct ddp__verdict {
    struct ddp__engine *e; /* not owned */
    int64_t step, index;   /* of the step; index: among those of the engine */
    bool taken;            /* the scaler is kept */
    double scaler[DDP__SCALERS]; /* before the step */
    atomic_int left;             /* vectors that are being undone */
};

struct ddp__early {
    struct ddp__before *kept;     /* by bucket; owned */
    struct ddp__verdict *verdict; /* ring of run_ahead + 1; owned */
    struct ddp__call terms, decide;
    bool begun; /* a step is submitted up to its updates */
};

/* Have larger buckets and longer forward tasks if the engine is to have early
 * updates, before its parameters are bound and its graph is made. */
int ddp__early_prepare(struct ddp__engine *e);

/* If the engine is to have early updates: e->early.  After its updates have
 * been made. */
int ddp__early_new(struct ddp__engine *e);
void ddp__early_free(struct ddp__engine *e);

/* Bytes that are kept. */
double ddp__early_size(const struct ddp__engine *e);

/* Whether updates of the next step are early ones: then submit begin, once the
 * statistics are; keep, before the update of each bucket; the decision; end. */
bool ddp__early_used(const struct ddp__engine *e);
int ddp__early_begin(struct ddp__engine *e, const struct ddp__step *s);
int ddp__early_keep(struct ddp__vector_task *t, int bucket);
int ddp__early_end(struct ddp__engine *e, const struct ddp__step *s);

/* The submission has failed somewhere: what there is of a step is undone. */
void ddp__early_fail(struct ddp__engine *e);

/* That of the step with this number among those of the engine. */
struct ddp__verdict *ddp__early_verdict(struct ddp__engine *e, int64_t index);

#endif
