/* scheduler_help.h - workers that have nothing to do help with a sub-batch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The last sub-batches of a step do not end at the same time, and a step may
 * have fewer than there are workers.  In main memory a worker without a task
 * then takes one of another's sub-batch, such as a weight gradient while its
 * owner computes the data gradient.  The policy's lock is held at every call.
 */
#ifndef DDP_SCHEDULER_HELP_H
#define DDP_SCHEDULER_HELP_H

#include "runtime/scheduler_calls.h"

/* A task of another worker's sub-batch, or NULL. */
struct starpu_task *ddp__help_next(struct ddp__sched *s, int id);

/* A task of u, which has an owner, is ready: call the owner or, if it is busy,
 * another one. */
void ddp__help_ready(struct ddp__sched *s, struct ddp__sched_sub *u,
                     struct ddp__sched_calls *c);

/* A worker has taken a task: call another one for what it has left. */
void ddp__help_taken(struct ddp__sched *s, int id, struct ddp__sched_calls *c);

#endif
