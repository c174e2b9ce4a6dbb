/* scheduler.h - the "ddp" scheduling policy, and how tasks tell it what they
 * are
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sub-batch is one unit of work: the first idle worker that can run its first
 * ready task claims it, and all its other tasks follow to that worker.  Workers
 * begin with neighbouring lanes, whose sums are merged where they are, and then
 * take the last ones of others.  The next sub-batch of the same lane is free
 * again; on GPUs another takes it if it will be done with it earlier although
 * the lane's sums are moved.  A worker leaves the last sub-batches of a step to
 * faster ones that will be done with them earlier; in main memory one that has
 * nothing to do helps another with the long tasks of its sub-batch.  Merges and
 * updates go to the worker that their owner number names, merges of large
 * buckets to the worker of a lane, and run before the worker's lanes as soon as
 * their data are there.  Tasks without a tag run when there are none of ours.
 */
#ifndef DDP_SCHEDULER_H
#define DDP_SCHEDULER_H

#include <starpu.h>
#include <starpu_scheduler.h>

#include "ddp.h"

enum ddp__sched_kind {
    DDP__SCHED_LANE,   /* belongs to (step, lane, sub) */
    DDP__SCHED_MERGE,  /* goes to owner, before its lanes */
    DDP__SCHED_UPDATE, /* likewise */
    DDP__SCHED_INPUT,  /* decoding ahead: when there is nothing else to do */
};

#define DDP__SCHED_MAGIC 0xdd90a1e5u

/* What task->sched_data points to: one per task, alive until the task is done.
 *
 * Steps are submitted one after another, each whole.  A lane waits, directly or
 * through others, for no other lane of its step; what a sub-batch needs of its
 * lane or of other steps was submitted before.  Of a step whose lanes do wait
 * for each other, each part between two such places counts as a step here. */
struct ddp__sched_tag {
    uint32_t magic; /* DDP__SCHED_MAGIC */
    enum ddp__sched_kind kind;
    bool last;      /* no task of this sub-batch is submitted after this */
    int lane;       /* LANE; MERGE with at_lane */
    int nth, lanes; /* LANE: its place among so many, of which each worker shall
                       begin with neighbours; lanes 0: any one will do */
    int sub;        /* LANE: sub-batch of the step; lanes have them in order */
    int subs;       /* LANE: sub-batches of the step; 0: unknown */
    int graph;      /* LANE: rates of workers are those of one graph */
    double work;    /* LANE: of the sub-batch, to compare it with others of its
                       graph; 0: as much as any other */
    double sums;    /* LANE: bytes of the lane's accumulators */
    int64_t step;   /* LANE */
    int owner;      /* MERGE, UPDATE: taken modulo the workers that can */
    bool at_lane;   /* MERGE: goes to the worker of its lane, not to owner */
    bool at_data;   /* MERGE: before that to an accelerator that has its data */
    struct ddp__sched_sub *at; /* the policy's own */
};

extern struct starpu_sched_policy ddp__sched_policy;

/* Of a running policy "ddp": the most lanes that a worker may have in flight,
 * GPUs two (one is queued while the other runs); 0: another policy runs. */
int ddp__sched_cap(void);
/* From now on a lane's sums stay in the memory they are in during a step. */
void ddp__sched_stay(void);
/* The most sub-batches that all CPU workers together compute from now on, and
 * all workers of a GPU. */
void ddp__sched_limit_main(int most);
void ddp__sched_limit_gpu(int most);

#endif
