/* task.c - calls as StarPU's tasks, submitted
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/context.h"
#include "runtime/device_list.h"
#include "runtime/devices.h"
#include "runtime/task.h"
#include "runtime/task_run.h"
#include "runtime/trace.h"

/* One per operation, and one for tasks of several. */
enum { SEVERAL = DDP__OP_COUNT, CODELETS };
static struct starpu_codelet cl[CODELETS];
static struct starpu_perfmodel model[CODELETS];

/* Once in a process: a StarPU of the program keeps what it knows of codelets
 * and models from one context to the next. */
void ddp__tasks_init(void)
{
    for (int op = 0; op < CODELETS && !cl[op].name; op++) {
        cl[op].name = op == SEVERAL ? "segment" : ddp__signature[op].name;
        model[op].type = STARPU_PER_ARCH;
        model[op].symbol = cl[op].name;
        model[op].arch_cost_function = ddp__task_cost;
        cl[op].model = &model[op];
        cl[op].nbuffers = STARPU_VARIABLE_NBUFFERS;
        if (op != SEVERAL && ddp__op_is(op, DDP__IS_HOST))
            cl[op].flags = STARPU_CODELET_SIMGRID_EXECUTE;
        for (int i = 0; ddp__devices[i]; i++) {
            cl[op].where |= ddp__devices[i]->where;
            ddp__devices[i]->attach(&cl[op], ddp__task_run);
        }
    }
}

int ddp__submit_part(const struct ddp__submit *s)
{
    enum ddp__op op = s->call[0].task.call->op;

    switch (s->tag.kind) {
    case DDP__SCHED_INPUT:
        return DDP_PART_INPUT;
    case DDP__SCHED_LANE:
        return s->backward ? DDP_PART_BACKWARD : DDP_PART_FORWARD;
    case DDP__SCHED_UPDATE:
        return DDP_PART_UPDATE;
    default:
        return s->always                      ? DDP__PART_END
               : ddp__op_is(op, DDP__IS_HOST) ? DDP_PART_UPDATE
                                              : DDP_PART_MERGE;
    }
}

static int count_buffers(const struct ddp__submit *s)
{
    int n = 0;

    for (int i = 0; i < s->calls; i++)
        n += s->call[i].task.call->buffers;
    return n;
}

/* Where the task keeps what it is given; more than a few go to the heap, which
 * StarPU gives back. */
static bool make_room(struct starpu_task *task, int buffers)
{
    if (buffers <= STARPU_NMAXBUFS)
        return true;
    task->dyn_handles = malloc((size_t)buffers * sizeof(*task->dyn_handles));
    task->dyn_modes = malloc((size_t)buffers * sizeof(*task->dyn_modes));
    return task->dyn_handles && task->dyn_modes;
}

static enum starpu_data_access_mode mode_of(enum ddp_access a)
{
    return a == DDP_READ ? STARPU_R : a == DDP_WRITE ? STARPU_W : STARPU_RW;
}

/* A mode for both accesses, the one by `a` being first: what is written first
 * need not be fetched. */
static enum starpu_data_access_mode
combine_modes(enum starpu_data_access_mode a, enum starpu_data_access_mode b)
{
    return a == STARPU_R && b != STARPU_R ? STARPU_RW : a;
}

/* The task's place for a handle, which it may have already. */
static int add_buffer(struct starpu_task *task, starpu_data_handle_t h,
                      enum starpu_data_access_mode mode)
{
    int i;

    for (i = 0; i < task->nbuffers; i++)
        if (STARPU_TASK_GET_HANDLE(task, i) == h)
            break;
    if (i < task->nbuffers)
        mode = combine_modes(STARPU_TASK_GET_MODE(task, i), mode);
    else
        task->nbuffers++;
    STARPU_TASK_SET_HANDLE(task, h, i);
    STARPU_TASK_SET_MODE(task, mode, i);
    return i;
}

/* Whether nothing runs, so that contents stay as they are. */
static bool is_fence(const struct ddp__call *c)
{
    return ddp__op_is(c->op, DDP__IS_HOST) && !c->host.fn;
}

/* Contents are identified as a call will find them: what the task itself wrote
 * before is another version. */
static void fill_call(struct starpu_task *task, struct ddp__called *one,
                      const struct ddp__task_call *p)
{
    int trained = ddp__op_operand(p->task.call->op, DDP__TRAINED);

    one->task = p->task;
    one->far = 0;
    one->weights = trained < 0 ? NULL : p->buf[trained]->h;
    one->updated = p->updated;
    for (int i = 0; i < p->task.call->buffers; i++) {
        if (!p->buf[i]) {
            one->at[i] = -1;
            continue;
        }
        if (p->access[i] != DDP_READ && !is_fence(p->task.call)) {
            p->buf[i]->version++;
            p->buf[i]->common = p->common;
        }
        one->task.size[i] = p->buf[i]->size;
        one->task.id[i] = p->buf[i]->id;
        one->task.version[i] = p->buf[i]->version;
        one->task.common[i] = p->buf[i]->common;
        one->at[i] = add_buffer(task, p->buf[i]->h,
                                p->shared ? STARPU_R : mode_of(p->access[i]));
    }
}

static struct ddp__task_run *run_new(struct starpu_task *task,
                                     const struct ddp__submit *s)
{
    struct ddp__task_run *r =
        malloc(sizeof(*r) + (size_t)s->calls * sizeof(struct ddp__called));

    if (!r || !make_room(task, count_buffers(s))) {
        free(r);
        return NULL;
    }
    *r = (struct ddp__task_run){.group = s->group,
                                .tag = s->tag,
                                .step = s->step,
                                .part = ddp__submit_part(s),
                                .always = s->always,
                                .split = s->split,
                                .calls = s->calls};
    r->tag.magic = DDP__SCHED_MAGIC;
    for (int i = 0; i < s->calls; i++)
        fill_call(task, &r->call[i], &s->call[i]);
    return r;
}

/* What StarPU did not take. */
static void destroy_task(struct starpu_task *task)
{
    task->destroy = 0;
    starpu_task_destroy(task);
}

static uint32_t where_all(const struct ddp__submit *s)
{
    const ddp_t *ddp = s->group->ddp;
    uint32_t all = ddp__call_where(ddp, s->call[0].task.call);

    for (int i = 1; i < s->calls; i++)
        all &= ddp__call_where(ddp, s->call[i].task.call);
    return all;
}

static bool may_queue(const ddp_t *ddp, uint32_t where)
{
    const struct ddp__device *d = ddp->accelerator;

    return d && d->queues && (where & d->where);
}

/* Everything is set before the submission, because the task may have ended,
 * and freed itself, before starpu_task_submit() returns. */
int ddp__submit(const struct ddp__submit *s)
{
    int op = s->calls == 1 ? (int)s->call[0].task.call->op : SEVERAL, rc;
    struct starpu_task *task = starpu_task_create();
    struct ddp__task_run *r;

    if (!task)
        return ddp__fail(DDP_ENOMEM, "out of memory for a task");
    task->cl = &cl[op];
    if (!(r = run_new(task, s))) {
        destroy_task(task);
        return ddp__fail(DDP_ENOMEM, "out of memory for a task");
    }
    task->name = cl[op].name;
    task->cl_arg = r;
    task->cl_arg_size = sizeof(*r);
    task->cl_arg_free = 1;
    task->sched_data = &r->tag;
    task->where = where_all(s);
    r->queues = may_queue(s->group->ddp, task->where);
    task->callback_func = ddp__task_end;
    task->callback_arg = r;
    if (s->group->trace)
        r->traced = ddp__trace_task(s->group->trace, s);
    task->priority = s->priority;
    ddp__task_group_add(s->group, 1);
    if ((rc = starpu_task_submit(task)) == 0)
        return 0;
    ddp__task_group_add(s->group, -1);
    destroy_task(task);
    return ddp__fail(DDP_ENODEV, "%s: no worker can run it (%s)", cl[op].name,
                     strerror(-rc));
}
