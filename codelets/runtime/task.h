/* task.h - calls as StarPU's tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TASK_H
#define DDP_TASK_H

#include "ops.h"
#include "runtime/buffer.h"
#include "runtime/task_group.h"
#include "runtime/scheduler.h"

/* A call of a task: its buffers, and the arguments of this run of it. */
struct ddp__task_call {
    struct ddp__task task; /* call, n, accumulate, seed, lr */
    struct ddp__handle *buf[DDP_MAX_BUFFERS]; /* NULL: absent */
    enum ddp_access access[DDP_MAX_BUFFERS];
    _Atomic int64_t *updated; /* not owned: gets the step in which weights are
                                 updated, before they are; NULL: the group's
                                 updated_step gets it */
    uint64_t common; /* other than 0: all ranks write the same, and then alone
                        with this number */
    bool shared;     /* tasks write other elements of its buffers meanwhile: to
                        StarPU it only reads them, and the caller orders what else
                        uses them */
};

/* A task: calls that run one after another on one worker. */
struct ddp__submit {
    const struct ddp__task_call *call; /* not owned, like group */
    int calls;
    struct ddp__task_group *group;
    struct ddp__sched_tag tag;
    int64_t step; /* for messages; tag.step orders lanes of all engines */
    int priority;
    bool always;   /* run even after a failure */
    bool backward; /* of the backward pass */
    bool split;    /* idle workers help with its kernels */
};
int ddp__submit(const struct ddp__submit *s);

/* The part of a step that it belongs to: enum ddp_step_part, or
 * DDP__PART_END. */
int ddp__submit_part(const struct ddp__submit *s);

/* Make the codelets, before the first task. */
void ddp__tasks_init(void);

#endif
