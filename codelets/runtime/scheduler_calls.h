/* scheduler_calls.h - the policy's lock, and the workers that it calls
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SCHEDULER_CALLS_H
#define DDP_SCHEDULER_CALLS_H

#include "runtime/alarm.h"
#include "runtime/claims.h"
#include "runtime/rest.h"
#include "runtime/task_queue.h"

struct ddp__sched_worker {
    struct ddp__rest rest; /* while it waits */
    struct queue updates;  /* and merges, of the buckets that it owns */
};

struct ddp__sched {
    starpu_pthread_mutex_t lock;
    int cap; /* of every worker; 0: by its kind */
    struct ddp__claims claims;
    struct ddp__alarm alarm;
    struct queue shared; /* tasks that their sub-batch's owner cannot run */
    struct queue foreign, input;
    struct ddp__sched_worker worker[STARPU_NMAXWORKERS]; /* by id */
};

enum { DDP__SCHED_AHEAD = 8 }; /* tasks; the data of more are not sent ahead */

/* What to do once the lock is released: workers to wake, and data to send to
 * another one.  StarPU's lock of a buffer is not waited for with ours held. */
struct ddp__sched_calls {
    int n, id[STARPU_NMAXWORKERS];
    int to, tasks; /* the worker, and how many tasks of its own */
    struct starpu_task *task[DDP__SCHED_AHEAD];
    struct ddp__sched_sub *ahead; /* whose input is sent; NULL: none */
};

/* Lock the policy of a context. */
struct ddp__sched *ddp__sched_lock(unsigned ctx);
/* Release the lock, and do what c lists. */
void ddp__sched_unlock(struct ddp__sched *s, const struct ddp__sched_calls *c);

/* With the lock held: call a worker that waits; false if it does not. */
bool ddp__sched_call(struct ddp__sched *s, int id, struct ddp__sched_calls *c);
/* Likewise those that can run t; all, if t is NULL. */
void ddp__sched_call_all(struct ddp__sched *s, struct starpu_task *t,
                         struct ddp__sched_calls *c);

#endif
