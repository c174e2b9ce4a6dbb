/* task.c - calls as StarPU's tasks: submitting them, and running them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/borrowed.h"
#include "runtime/context.h"
#include "runtime/cost.h"
#include "runtime/device_list.h"
#include "runtime/devices.h"
#include "runtime/helpers.h"
#include "runtime/missing.h"
#include "runtime/profile.h"
#include "runtime/task.h"
#include "runtime/trace.h"
#include "runtime/undo.h"
#include "ops_times.h"

/* One per operation, and one for tasks of several. */
enum { SEVERAL = DDP__OP_COUNT, CODELETS };
static struct starpu_codelet cl[CODELETS];
static struct starpu_perfmodel model[CODELETS];

/* cl_arg of every task. */
struct run {
    struct ddp__task_group *group;
    struct ddp__sched_tag tag;
    int64_t step;
    int part;
    bool always, split;
    bool queues;                /* it may run on a device that does */
    struct ddp__traced *traced; /* not owned; NULL: it is not */
    double begin; /* asynchronous: when its kernels were queued; else 0 */
    int calls;
    struct called {
        struct ddp__task task;
        starpu_data_handle_t weights; /* that it updates; NULL: none */
        _Atomic int64_t *updated;     /* not owned; NULL: the group's */
        int at[DDP_MAX_BUFFERS];      /* which of the task's each buffer is;
                                         -1: it is absent */
    } call[];
};

/* ---- running a task ----------------------------------------------------- */

static int run_host(const struct ddp__task *t)
{
    return t->call->host.fn(t, t->call->host.arg);
}

static int run_user(const struct ddp__task *t, const struct ddp__device *d)
{
    const struct ddp__call *c = t->call;
    struct ddp_kernel_args a = {
        .n = t->n,
        .buffers = c->buffers,
        .accumulate = t->accumulate,
        .stream = d->stream ? d->stream() : NULL,
        .arg = c->user.arg,
    };
    int rc;

    for (int i = 0; i < c->buffers; i++)
        a.buf[i] =
            (struct ddp_buffer){t->data[i], c->buf[i].type, c->buf[i].shape};
    if ((rc = c->user.kernel->on[d->kind](&a)) != 0)
        return ddp__fail(DDP_EDEVICE, "kernel %s returned %d",
                         c->user.kernel->name, rc);
    return 0;
}

static int run_kernel(const struct ddp__task *t, const struct ddp__device *d)
{
    if (ddp__op_is(t->call->op, DDP__IS_HOST))
        return run_host(t);
    if (ddp__op_is(t->call->op, DDP__IS_USER))
        return run_user(t, d);
    return t->call->on[d->kind].backend->kernel[t->call->op](t);
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

/* Only the worker itself adds; others read. */
static void add_time(_Atomic double *sum, double seconds)
{
    double before = atomic_load_explicit(sum, memory_order_relaxed);

    atomic_store_explicit(sum, before + seconds, memory_order_relaxed);
}

/* Book a task that ran from begin to end on worker w. */
static void account_time(struct run *r, int w, double begin, double end)
{
    struct ddp__worker_time *b = &r->group->time_of[w % DDP__MAX_WORKERS];

    if (r->tag.kind == DDP__SCHED_LANE && b->last_lane == r->tag.lane &&
        b->last_step == r->tag.step && b->tasks)
        b->gap_s += begin - b->last_end;
    add_time(&b->part_s[r->part], end - begin);
    b->last_end = end;
    b->last_lane = r->tag.kind == DDP__SCHED_LANE ? r->tag.lane : -1;
    b->last_step = r->tag.step;
    b->tasks++;
    if (r->traced)
        ddp__trace_ran(r->traced, w, begin, end);
}

/* Which device it was, for messages: the worker, and on a CPU whose kernel. */
static const char *device_name(const struct ddp__call *c,
                               const struct ddp__device *d)
{
    static _Thread_local char name[128];
    const struct ddp__backend *b =
        d->kind == DDP_CPU ? c->on[d->kind].backend : NULL;
    size_t len;

    starpu_worker_get_name(starpu_worker_get_id(), name, sizeof(name));
    len = strlen(name);
    if (b)
        snprintf(name + len, sizeof(name) - len, " (%s)", b->name);
    return name;
}

/* Note which worker computed the first value that is not finite; the data are
 * in host memory. */
static void note_nonfinite(struct ddp__task_group *g, const struct ddp__task *t,
                           int worker)
{
    int watched = ddp__op_operand(t->call->op, DDP__WATCHED);
    const double *value = watched < 0 ? NULL : t->data[watched];
    int nobody = 0;

    if (value && !isfinite(value[0]))
        atomic_compare_exchange_strong(&g->seen_by, &nobody, worker + 1);
}

/* Whether this task belongs to a step that failed, or to one after it.  Steps
 * before it are finished, so that the weights are those of a whole step. */
static bool is_void(const struct run *r)
{
    return !r->always && atomic_load(&r->group->rc) != 0 &&
           r->step >= atomic_load(&r->group->failed_step);
}

/* StarPU's buffers become pointers of the call. */
static int take_buffers(void *buffers[], struct called *one)
{
    struct ddp__task *t = &one->task;
    uint64_t undone = ddp__undo_version();

    for (int i = 0; i < t->call->buffers; i++) {
        void *b = one->at[i] < 0 ? NULL : buffers[one->at[i]];
        char *p;

        if (!b)
            continue;
        p = (char *)STARPU_VARIABLE_GET_PTR(b);
        if (ddp__is_missing(p))
            return ddp__buffer_fail(t->size[i]);
        if (ddp__is_borrowed(p))
            return ddp__device_buffer_fail(t->size[i]);
        t->data[i] = p + t->call->buf[i].offset;
        t->version[i] += undone;
    }
    return 0;
}

/* What failed, for messages: of the functions that the host runs, only reading
 * can. */
static const char *call_name(const struct ddp__call *c)
{
    if (ddp__op_is(c->op, DDP__IS_USER))
        return c->user.kernel->name;
    if (ddp__op_is(c->op, DDP__IS_HOST))
        return "reading input";
    return ddp__signature[c->op].name;
}

/* The failure is recorded here, where the call and the device are known. */
static void run_call(void *buffers[], struct run *r, struct called *one,
                     const struct ddp__device *d)
{
    struct ddp__task *t = &one->task;
    const struct ddp__call *c = t->call;
    int rc = take_buffers(buffers, one);
    double begin = ddp__profile_begin();

    t->plan = c->on[d->kind].plan;
    if (rc == 0 && one->weights)
        atomic_store(one->updated ? one->updated : &r->group->updated_step,
                     r->step);
    if (rc == 0)
        rc = run_kernel(t, d);
    if (rc < 0)
        ddp__task_group_fail(
            r->group, r->step, rc, call_name(c),
            ddp__op_is(c->op, DDP__IS_HOST) ? NULL : device_name(c, d));
    else if (!d->queues) {
        ddp__profile_end(t, starpu_worker_get_id(), begin);
        note_nonfinite(r->group, t, starpu_worker_get_id());
    }
}

/* For which device a worker runs a call. */
static const struct ddp__device *device_of(const struct run *r, int i,
                                           enum starpu_worker_archtype worker)
{
    return ddp__call_device(r->group->ddp, r->call[i].task.call, worker);
}

/* What the calls left to be done for all at once: all that leave something have
 * the same backend. */
static void settle(struct run *r, enum starpu_worker_archtype worker)
{
    for (int i = 0; i < r->calls; i++) {
        const struct ddp__device *d = device_of(r, i, worker);
        const struct ddp__call *c = r->call[i].task.call;
        const struct ddp__backend *b = c->on[d->kind].backend;
        int rc;

        if (!b || !b->settle)
            continue;
        if ((rc = b->settle()) < 0)
            ddp__task_group_fail(r->group, r->step, rc, call_name(c),
                                 device_name(c, d));
        return;
    }
}

static void run_task(void *buffers[], void *arg)
{
    int w = starpu_worker_get_id();
    enum starpu_worker_archtype type = starpu_worker_get_type(w);
    double begin = ddp__now();
    struct run *r = arg;
    struct ddp__helpers *h;

    if (is_void(r))
        return; /* let the rest of a failed step drain */
    h = r->split ? ddp__helpers_begin(r->group->ddp) : NULL;
    for (int i = 0; i < r->calls && !is_void(r); i++)
        run_call(buffers, r, &r->call[i], device_of(r, i, type));
    settle(r, type);
    ddp__helpers_end(h);
    if (!is_void(r))
        ddp__borrowed_progress();
    if (device_of(r, 0, type)->queues)
        r->begin = begin;
    else
        account_time(r, w, begin, ddp__now());
}

/* ---- their end ----------------------------------------------------------- */

/* On device `number` of those that such workers belong to. */
static double run_us(const struct run *r, enum starpu_worker_archtype worker,
                     int number)
{
    double us = ddp__times_task();

    for (int i = 0; i < r->calls; i++) {
        const struct ddp__device *d = device_of(r, i, worker);

        us += ddp__cost_us(r->call[i].task.call, r->call[i].task.n, d) *
              (d->slowness ? d->slowness(number) : 1);
    }
    return us;
}

/* What a simulated device stops for. */
static double stall_us(const struct run *r, enum starpu_worker_archtype worker,
                       int number)
{
    const struct ddp__device *d = device_of(r, 0, worker);

    return d->stalled ? 1e6 * d->stalled(number, r) : 0;
}

/* Microseconds a task takes, for the policies that ask.  StarPU's own, measured
 * models would have to be calibrated, and 1.3 aborts when two workers begin
 * with one at the same time. */
static double task_cost(struct starpu_task *task,
                        struct starpu_perfmodel_arch *arch, unsigned nimpl)
{
    const struct starpu_perfmodel_device any = {.type = STARPU_CPU_WORKER},
                                         *d = arch->ndevices > 0
                                                  ? &arch->devices[0]
                                                  : &any;

    (void)nimpl;
    return run_us(task->cl_arg, d->type, d->devid) +
           stall_us(task->cl_arg, d->type, d->devid);
}

/* All accelerators will need weights that have been updated: send them at once.
 */
static void send_weights(const struct run *r)
{
    enum starpu_node_kind to = r->group->ddp->accelerator->memory;

    for (int c = 0; c < r->calls; c++) {
        starpu_data_handle_t w = r->call[c].weights;

        for (unsigned i = 0; w && i < starpu_memory_nodes_get_count(); i++)
            if (starpu_node_get_kind(i) == to)
                starpu_data_prefetch_on_node(w, i, 1);
    }
}

static void count_uses(const struct ddp__task *t, int w,
                       const struct ddp__device *d)
{
    const struct ddp__call *c = t->call;

    for (int i = 0; i < ddp__call_signature(c)->operands; i++)
        if (ddp__call_has(c, i))
            d->used(w, t->id[i], t->size[i],
                    ddp__operand_bytes(&c->buf[i], t->n),
                    ddp__call_access(c, i, !t->accumulate));
}

/* A simulated task was not run: it has taken what it costs.  What the host does
 * is run, and takes no time. */
static void simulate_task(struct run *r, int w)
{
    enum starpu_worker_archtype type = starpu_worker_get_type(w);
    const struct ddp__device *d = device_of(r, 0, type);
    double seconds = 1e-6 * run_us(r, type, starpu_worker_get_devid(w));

    for (int i = 0; i < r->calls && d->used; i++)
        count_uses(&r->call[i].task, w, d);
    if (!d->simulated || ddp__op_is(r->call[0].task.call->op, DDP__IS_HOST))
        return;
    r->begin = ddp__now() - seconds;
    d->simulated(r->tag.step, r->tag.kind == DDP__SCHED_LANE ? r->tag.lane : -1,
                 w, seconds);
}

/* What was queued behind another task began when that one ended. */
static void account_queued(struct run *r, int w)
{
    double before;

    if (r->begin == 0)
        return;
    before = r->group->time_of[w % DDP__MAX_WORKERS].last_end;
    account_time(r, w, r->begin > before ? r->begin : before, ddp__now());
}

/* The end of a task, also of one that did nothing. */
static void end_task(void *arg)
{
    struct run *r = arg;
    int w = starpu_worker_get_id();

    if (r->queues && starpu_get_prefetch_flag())
        send_weights(r);
    if (w >= 0) {
        simulate_task(r, w);
        account_queued(r, w);
    }
    ddp__task_group_add(r->group, -1);
}

/* ---- codelets ----------------------------------------------------------- */

/* Once in a process: a StarPU of the program keeps what it knows of codelets
 * and models from one context to the next. */
void ddp__tasks_init(void)
{
    for (int op = 0; op < CODELETS && !cl[op].name; op++) {
        cl[op].name = op == SEVERAL ? "segment" : ddp__signature[op].name;
        model[op].type = STARPU_PER_ARCH;
        model[op].symbol = cl[op].name;
        model[op].arch_cost_function = task_cost;
        cl[op].model = &model[op];
        cl[op].nbuffers = STARPU_VARIABLE_NBUFFERS;
        if (op != SEVERAL && ddp__op_is(op, DDP__IS_HOST))
            cl[op].flags = STARPU_CODELET_SIMGRID_EXECUTE;
        for (int i = 0; ddp__devices[i]; i++) {
            cl[op].where |= ddp__devices[i]->where;
            ddp__devices[i]->attach(&cl[op], run_task);
        }
    }
}

/* ---- submission --------------------------------------------------------- */

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
static void fill_call(struct starpu_task *task, struct called *one,
                      const struct ddp__task_call *p)
{
    int trained = ddp__op_operand(p->task.call->op, DDP__TRAINED);

    one->task = p->task;
    one->weights = trained < 0 ? NULL : p->buf[trained]->h;
    one->updated = p->updated;
    for (int i = 0; i < p->task.call->buffers; i++) {
        if (!p->buf[i]) {
            one->at[i] = -1;
            continue;
        }
        if (p->access[i] != DDP_READ && !is_fence(p->task.call))
            p->buf[i]->version++;
        one->task.size[i] = p->buf[i]->size;
        one->task.id[i] = p->buf[i]->id;
        one->task.version[i] = p->buf[i]->version;
        one->at[i] = add_buffer(task, p->buf[i]->h, mode_of(p->access[i]));
    }
}

static struct run *run_new(struct starpu_task *task,
                           const struct ddp__submit *s)
{
    struct run *r =
        malloc(sizeof(*r) + (size_t)s->calls * sizeof(struct called));

    if (!r || !make_room(task, count_buffers(s))) {
        free(r);
        return NULL;
    }
    *r = (struct run){.group = s->group,
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
    struct run *r;

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
    task->callback_func = end_task;
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
