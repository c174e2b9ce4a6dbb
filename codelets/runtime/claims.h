/* claims.h - which worker takes which sub-batch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * State of the policy "ddp", whose lock is held at every call.
 */
#ifndef DDP_CLAIMS_H
#define DDP_CLAIMS_H

#include <stdatomic.h>

#include "runtime/scheduler.h"
#include "runtime/task_queue.h"

enum {
    DDP__STICKY = 256,     /* lanes whose worker is remembered; others share */
    DDP__CLAIM_STEPS = 64, /* whose claims are counted; others share */
    DDP__RATES = 16,       /* graphs whose rates are known; others share */
};

/* One sub-batch of one step. */
struct ddp__sched_sub {
    struct ddp__sched_sub *next; /* in order of age, lane, sub */
    int64_t age, step;
    int lane, sub;
    int of; /* sub-batches that the step has; 0: unknown */
    int graph;
    double work;
    double sums; /* bytes of its lane's accumulators */
    int home;    /* worker that begins with it; -1: none, or it left it */
    int owner;   /* worker; -1: unclaimed */
    double ran;  /* seconds that its tasks took so far */
    int tasks;   /* submitted so far */
    int pending; /* of these not done: in flight while > 0 */
    bool closed; /* none will be submitted any more; nor in older steps */
    struct queue ready;
    starpu_data_handle_t input; /* in main memory; NULL: not yet */
    bool ahead;                 /* and on its way to who had its lane */
    bool sending; /* that begins: nobody claims it, or the input could be used
                     and freed meanwhile */
};

/* How fast a worker is with sub-batches of a graph. */
struct ddp__rate {
    int graph;
    double rate;    /* measured, of work, per second; 0: unknown */
    double hope;    /* so many times as fast it thinks to be */
    bool warm;      /* it has ended one */
    int64_t first;  /* then: of which step */
    int64_t left;   /* the last step of which it left one to a faster worker */
    double left_at; /* when */
};

struct ddp__claimer {
    int cap;                           /* sub-batches in flight */
    struct ddp__rate rate[DDP__RATES]; /* see ddp__rate_of() */
    bool doing;       /* it has claimed some that are not done */
    double left_s;    /* then: seconds left of them, of known rates */
    double since;     /* when it last claimed one or ended a task */
    bool waits;       /* all that it has claimed waits for an older step */
    int taken;        /* tasks of an accelerator that have not begun: their data
                         are on their way, or another one runs */
    bool runs;        /* one has begun, and not ended */
    bool comes;       /* it takes its next ready task at once: it ends the one
                         before, or has been called */
    double began;     /* when its last task did */
    double elsewhere; /* since when its task belongs to no sub-batch; 0: none */
    double until;     /* left to faster ones: it looks again then; 0: did not */
    atomic_bool waiting; /* it got nothing, and shall be called */
};

struct ddp__claims {
    int64_t step; /* being submitted */
    int64_t age;  /* steps so far: their order of submission */
    struct ddp__sched_sub *first;
    struct {
        int id;      /* worker that last had the lane; -1: none */
        int64_t age; /* in this step */
    } sticky[DDP__STICKY];
    int submitted[DDP__CLAIM_STEPS]; /* by age: sub-batches so far */
    int claimed[DDP__CLAIM_STEPS];   /* of these */
    bool stay;  /* lanes are not moved to another memory within a step */
    int call;   /* the worker that a sub-batch was left to; -1: none */
    bool freed; /* one has left a home */
    int most_main, most_gpu; /* in flight at a time in main memory, in a GPU's;
                                0: no limit */
    int workers, id[STARPU_NMAXWORKERS];
    struct ddp__claimer by[STARPU_NMAXWORKERS]; /* by id */
};

void ddp__claims_init(struct ddp__claims *c);
void ddp__claims_free(struct ddp__claims *c);

/* The sub-batch that a task being submitted belongs to, made if it is a new
 * one.  NULL: no memory for it, and its tasks will run anywhere. */
struct ddp__sched_sub *ddp__claims_sub(struct ddp__claims *c,
                                       const struct ddp__sched_tag *tag);

/* Free those that are done and get no more tasks. */
void ddp__claims_free_done(struct ddp__claims *c);

/* The worker that has the sums of the sub-batch's lane in a memory of its own;
 * else -1. */
int ddp__claims_holder(const struct ddp__claims *c,
                       const struct ddp__sched_sub *u);

/* Sub-batches that a worker has claimed and not ended, of steps that are not
 * newer than age. */
int ddp__claims_open(const struct ddp__claims *c, int id, int64_t age);

/* The worker that last had a lane; -1: none. */
int ddp__claims_last(const struct ddp__claims *c, int lane);

/* The sub-batch for a worker: of the oldest step that has one, the first that
 * is at home there or whose lane's sums it has; else the last of another
 * worker, at last one whose lane's sums another memory has; NULL: it takes
 * none.  `call` may name a worker that it leaves one to, and `freed` be set:
 * all shall look again. */
struct ddp__sched_sub *ddp__claims_choose(struct ddp__claims *c, int id);

/* Whether all sub-batches of u's step have been submitted. */
bool ddp__claims_complete(const struct ddp__claims *c,
                          const struct ddp__sched_sub *u);

void ddp__claims_take(struct ddp__claims *c, struct ddp__sched_sub *u, int id);

/* The best ready task of what the worker has claimed: older steps first. */
struct starpu_task *ddp__claims_owned(struct ddp__claims *c, int id);

#endif
