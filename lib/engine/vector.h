/* vector.h - operations on whole vectors, as tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_VECTOR_H
#define DDP_VECTOR_H

#include "engine/step.h"
#include "ops.h"
#include "runtime/buffer.h"
#include "runtime/task.h"

/* Tasks that others wait for come first. */
enum ddp__priority {
    DDP__PRIORITY_FORWARD,
    DDP__PRIORITY_BACKWARD,
    DDP__PRIORITY_UPDATE
};

/* Operations on whole vectors, which belong to no lane.  Consecutive ones with
 * the same owner share a task, as the nodes of a lane do in a segment. */
struct ddp__vector_task {
    struct ddp__engine *e;
    const struct ddp__step *s;
    int owner, calls; /* so far, in e->task_call */
    double us;
    _Atomic int64_t *updated; /* of its calls: see task.h */
    int lane; /* if at_lane: the task goes to its worker, not to the owner */
    bool at_lane;
    bool at_data; /* to where its data are, if that is one GPU */
    bool shared;  /* of its calls: see task.h */
};

/* Add one. */
int ddp__vector_add(struct ddp__vector_task *t, const struct ddp__call *call,
                    int owner, struct ddp__handle *const buf[],
                    bool accumulate);
/* Add one to the task of the last one, which has just written what it reads.
 * Nothing else writes its other buffers meanwhile, even if t->shared. */
void ddp__vector_join(struct ddp__vector_task *t, const struct ddp__call *call,
                      struct ddp__handle *const buf[]);
/* Submit what has been added. */
int ddp__vector_flush(struct ddp__vector_task *t);
/* Submit one alone, with its owner or at its lane. */
int ddp__vector_submit(struct ddp__vector_task *t, const struct ddp__call *call,
                       struct ddp__handle *const buf[]);
/* Submit a task that runs nothing, and so orders what uses its buffers. */
int ddp__vector_fence(struct ddp__engine *e, const struct ddp__step *s,
                      const struct ddp__task_call *fence);

#endif
