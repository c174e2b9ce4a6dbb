/* task_run.h - what a worker does with a task, and at its end
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TASK_RUN_H
#define DDP_TASK_RUN_H

#include "runtime/task.h"

/* cl_arg of every task. */
struct ddp__task_run {
    struct ddp__task_group *group;
    struct ddp__sched_tag tag;
    int64_t step;
    int part;
    bool always, split;
    bool queues;                /* it may run on a device that does */
    struct ddp__traced *traced; /* not owned; NULL: it is not */
    double begin; /* asynchronous: when its kernels were queued; else 0 */
    double us;    /* that it takes, of a simulated worker */
    int calls;
    struct ddp__called {
        struct ddp__task task;
        starpu_data_handle_t weights; /* that it updates; NULL: none */
        _Atomic int64_t *updated;     /* not owned; NULL: the group's */
        int at[DDP_MAX_BUFFERS];      /* which of the task's each buffer is;
                                         -1: it is absent */
        unsigned far; /* bit i: a simulated worker reads operand i from far */
    } call[];
};

/* StarPU's function of every codelet; arg is a task's cl_arg, as of its end. */
void ddp__task_run(void *buffers[], void *arg);

/* The end of a task, also of one that did nothing. */
void ddp__task_end(void *arg);

/* Microseconds a task takes, for the policies that ask.  StarPU's own, measured
 * models would have to be calibrated, and 1.3 aborts when two workers begin
 * with one at the same time. */
double ddp__task_cost(struct starpu_task *task,
                      struct starpu_perfmodel_arch *arch, unsigned nimpl);

#endif
