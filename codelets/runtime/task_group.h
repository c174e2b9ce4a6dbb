/* task_group.h - tasks that belong together: their first failure, end and clock
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TASK_GROUP_H
#define DDP_TASK_GROUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <starpu.h>

#include "ddp.h"

/* Seconds of the clock that tasks run by, which a simulation has of its own. */
double ddp__now(void);

enum { DDP__MAX_WORKERS = 512 };

/* How many tasks have been submitted and are not done. */
struct ddp__pending {
    starpu_pthread_mutex_t lock;
    starpu_pthread_cond_t none; /* are left */
    int64_t tasks;
};

void ddp__pending_init(struct ddp__pending *p);
void ddp__pending_fini(struct ddp__pending *p);
/* Count tasks, or (negative) that they are done. */
void ddp__pending_add(struct ddp__pending *p, int tasks);
/* Wait until all tasks submitted so far are done. */
void ddp__pending_wait(struct ddp__pending *p);

struct ddp__trace;

/* Parts of a step, and what tells the submitter that tasks are done. */
enum { DDP__PART_END = DDP_STEP_PARTS, DDP__PARTS };

/* What tasks that belong together share, such as those of an engine: the first
 * failure, which makes all later tasks do nothing, how many are not done, and
 * where the time went. */
struct ddp__task_group {
    atomic_int rc;
    pthread_mutex_t lock; /* of message, and of writing failed_step */
    char message[1024];
    _Atomic int64_t failed_step;  /* its tasks, and later ones, do nothing */
    _Atomic int64_t updated_step; /* last step whose OPTIM has run */
    /* Ring of the steps in flight: the step, and the worker that first computed
     * a loss or norm of it that is not finite; 0: none.  Owned. */
    _Atomic int64_t *seen;
    int seen_len;
    struct ddp__pending pending;
    ddp_t *ddp; /* not owned, like trace */
    int lanes;  /* accelerators without one need no weights; 0: all may */
    struct ddp__trace *trace; /* NULL: none */
    struct ddp__worker_time {
        _Atomic double part_s[DDP__PARTS]; /* read while tasks run */
        double gap_s;                      /* between tasks of one lane */
        double last_end;
        int64_t last_step, tasks;
        int last_lane;
    } time_of[DDP__MAX_WORKERS];
};

/* At most `steps` steps are in flight at the same time. */
int ddp__task_group_init(struct ddp__task_group *g, ddp_t *ddp, int steps);
void ddp__task_group_fini(struct ddp__task_group *g);

/* Seconds in tasks of a part that worker w has run so far; in all its tasks. */
double ddp__task_group_part(const struct ddp__task_group *g, int w, int part);
double ddp__task_group_busy(const struct ddp__task_group *g, int w);

/* Count tasks that are about to be submitted, or (negative) that are done. */
void ddp__task_group_add(struct ddp__task_group *g, int tasks);

/* Wait until all tasks submitted so far are done. */
void ddp__task_group_wait(struct ddp__task_group *g);

/* Keep the first failure, in the order of steps; the message is ddp_errmsg() of
 * this thread.  device: NULL if there is only one for op.  op NULL: the message
 * is complete. */
void ddp__task_group_fail(struct ddp__task_group *g, int64_t step, int rc,
                          const char *op, const char *device);

/* Fail the step if a device was lost. */
void ddp__task_group_check(struct ddp__task_group *g, int64_t step);

/* Note that a worker computed a number of a step that is not finite: the first
 * of a step is kept. */
void ddp__task_group_see(struct ddp__task_group *g, int64_t step, int worker);

/* The name of the worker that was noted for a step since the last call; "a
 * device" if none was. */
void ddp__task_group_seen_by(struct ddp__task_group *g, int64_t step, char *out,
                             size_t size);

/* The failure, with its message as this thread's ddp_errmsg(); 0: none. */
int ddp__task_group_error(struct ddp__task_group *g);

#endif
