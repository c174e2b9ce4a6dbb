/* task_run.c - what a worker does with a task, and at its end
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/borrowed.h"
#include "runtime/context.h"
#include "runtime/cost.h"
#include "runtime/devices.h"
#include "runtime/helpers.h"
#include "runtime/missing.h"
#include "runtime/profile.h"
#include "runtime/task_run.h"
#include "runtime/trace.h"
#include "runtime/undo.h"
#include "ops_times.h"

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

/* Only the worker itself adds; others read. */
static void add_time(_Atomic double *sum, double seconds)
{
    double before = atomic_load_explicit(sum, memory_order_relaxed);

    atomic_store_explicit(sum, before + seconds, memory_order_relaxed);
}

/* Book a task that ran from begin to end on worker w. */
static void account_time(struct ddp__task_run *r, int w, double begin,
                         double end)
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
static void note_nonfinite(struct ddp__task_run *r, const struct ddp__task *t,
                           int worker)
{
    int watched = ddp__op_operand(t->call->op, DDP__WATCHED);
    const double *value = watched < 0 ? NULL : t->data[watched];

    if (value && !isfinite(value[0]))
        ddp__task_group_see(r->group, r->step, worker);
}

/* Whether this task belongs to a step that failed, or to one after it.  Steps
 * before it are finished, so that the weights are those of a whole step. */
static bool is_void(const struct ddp__task_run *r)
{
    return !r->always && atomic_load(&r->group->rc) != 0 &&
           r->step >= atomic_load(&r->group->failed_step);
}

/* StarPU's buffers become pointers of the call. */
static int take_buffers(void *buffers[], struct ddp__called *one)
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
static void run_call(void *buffers[], struct ddp__task_run *r,
                     struct ddp__called *one, const struct ddp__device *d)
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
        note_nonfinite(r, t, starpu_worker_get_id());
    }
}

/* For which device a worker runs a call. */
static const struct ddp__device *device_of(const struct ddp__task_run *r, int i,
                                           enum starpu_worker_archtype worker)
{
    return ddp__call_device(r->group->ddp, r->call[i].task.call, worker);
}

/* Work that the calls deferred, to be done for all at once: all calls that
 * defer any have the same backend. */
static void settle(struct ddp__task_run *r, enum starpu_worker_archtype worker)
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

void ddp__task_run(void *buffers[], void *arg)
{
    int w = starpu_worker_get_id();
    enum starpu_worker_archtype type = starpu_worker_get_type(w);
    double begin = ddp__now();
    struct ddp__task_run *r = arg;
    struct ddp__helpers *h;

    ddp__task_group_check(r->group, r->step);
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

/* Of operand i. */
static double bytes_of(const struct ddp__task *t, int i)
{
    return ddp__call_share(t->call) *
           ddp__operand_bytes(&t->call->buf[i], t->n);
}

/* Whether operand i is there and is accessed otherwise than so. */
static bool not_only(const struct ddp__task *t, int i, enum ddp_access a)
{
    return ddp__call_has(t->call, i) &&
           ddp__call_access(t->call, i, !t->accumulate) != a;
}

/* Whether one of a task's first calls writes a buffer. */
static bool is_written(const struct ddp__task_run *r, int calls, uint64_t id)
{
    for (int c = 0; c < calls; c++) {
        const struct ddp__task *t = &r->call[c].task;

        for (int i = 0; i < ddp__call_signature(t->call)->operands; i++)
            if (t->id[i] == id && not_only(t, i, DDP_READ))
                return true;
    }
    return false;
}

/* What call n of a task reads from far, if this worker begins with it now. */
static unsigned find_far(const struct ddp__task_run *r, int n,
                         const struct ddp__device *d)
{
    const struct ddp__task *t = &r->call[n].task;
    int w = starpu_worker_get_id();
    unsigned far = 0;

    for (int i = 0; i < ddp__call_signature(t->call)->operands; i++)
        if (not_only(t, i, DDP_WRITE) && d->is_far(w, t->id[i]) &&
            !is_written(r, n, t->id[i]))
            far |= 1U << i;
    return far;
}

static double far_us(const struct ddp__called *one, const struct ddp__device *d)
{
    double bytes = 0;

    for (int i = 0; i < DDP_MAX_BUFFERS; i++)
        if (one->far >> i & 1)
            bytes += bytes_of(&one->task, i);
    return bytes > 0 ? d->far_us(bytes) : 0;
}

/* On device `number` of those that such workers belong to. */
static double run_us(const struct ddp__task_run *r,
                     enum starpu_worker_archtype worker, int number)
{
    double us = ddp__times_task();

    for (int i = 0; i < r->calls; i++) {
        const struct ddp__device *d = device_of(r, i, worker);

        us += ddp__cost_us(r->call[i].task.call, r->call[i].task.n, d) *
                  (d->slowness ? d->slowness(number) : 1) +
              far_us(&r->call[i], d);
    }
    return us;
}

/* What a simulated device stops for. */
static double stall_us(const struct ddp__task_run *r,
                       enum starpu_worker_archtype worker, int number)
{
    const struct ddp__device *d = device_of(r, 0, worker);

    return d->stalled ? 1e6 * d->stalled(number, r) : 0;
}

/* Until it ends, tasks on other nodes may write what it reads. */
static void note_far(struct ddp__task_run *r,
                     enum starpu_worker_archtype worker)
{
    for (int i = 0; i < r->calls; i++) {
        const struct ddp__device *d = device_of(r, i, worker);

        if (d->is_far)
            r->call[i].far = find_far(r, i, d);
    }
}

/* The last one to ask is the worker, when it begins. */
double ddp__task_cost(struct starpu_task *task,
                      struct starpu_perfmodel_arch *arch, unsigned nimpl)
{
    const struct starpu_perfmodel_device any = {.type = STARPU_CPU_WORKER},
                                         *d = arch->ndevices > 0
                                                  ? &arch->devices[0]
                                                  : &any;
    struct ddp__task_run *r = task->cl_arg;
    double us;

    (void)nimpl;
    note_far(r, d->type);
    us = run_us(r, d->type, d->devid);
    if (device_of(r, 0, d->type)->simulated)
        r->us = us;
    return us + stall_us(r, d->type, d->devid);
}

/* Whether an accelerator begins with lanes, the n-th of so many. */
static bool has_lanes(const struct ddp__task_group *g, int n, int of)
{
    return g->lanes == 0 || (n + 1) * g->lanes / of > n * g->lanes / of;
}

/* All accelerators will need weights that have been updated: send them at once.
 */
static void send_weights(const struct ddp__task_run *r)
{
    unsigned node[STARPU_MAXNODES];
    int n = 0;

    for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++)
        if (starpu_node_get_kind(i) == r->group->ddp->accelerator->memory)
            node[n++] = i;
    for (int c = 0; c < r->calls; c++)
        for (int i = 0; r->call[c].weights && i < n; i++)
            if (has_lanes(r->group, i, n))
                starpu_data_prefetch_on_node(r->call[c].weights, node[i], 1);
}

static void count_uses(const struct ddp__called *one, int w,
                       const struct ddp__device *d)
{
    const struct ddp__task *t = &one->task;
    const struct ddp__call *c = t->call;

    for (int i = 0; i < ddp__call_signature(c)->operands; i++)
        if (ddp__call_has(c, i))
            d->used(w, t->id[i], t->size[i], bytes_of(t, i),
                    ddp__call_access(c, i, !t->accumulate), one->far >> i & 1);
}

/* A simulated task was not run: it has taken what it costs.  What the host does
 * is run, and takes no time. */
static void simulate_task(struct ddp__task_run *r, int w)
{
    enum starpu_worker_archtype type = starpu_worker_get_type(w);
    const struct ddp__device *d = device_of(r, 0, type);
    double seconds = 1e-6 * r->us;

    for (int i = 0; i < r->calls && d->used; i++)
        count_uses(&r->call[i], w, d);
    if (!d->simulated || ddp__op_is(r->call[0].task.call->op, DDP__IS_HOST))
        return;
    r->begin = ddp__now() - seconds;
    d->simulated(r->tag.step, r->tag.kind == DDP__SCHED_LANE ? r->tag.lane : -1,
                 w, seconds);
}

/* What was queued behind another task began when that one ended. */
static void account_queued(struct ddp__task_run *r, int w)
{
    double before;

    if (r->begin == 0)
        return;
    before = r->group->time_of[w % DDP__MAX_WORKERS].last_end;
    account_time(r, w, r->begin > before ? r->begin : before, ddp__now());
}

void ddp__task_end(void *arg)
{
    struct ddp__task_run *r = arg;
    int w = starpu_worker_get_id();

    ddp__task_group_check(r->group, r->step);
    if (r->queues && starpu_get_prefetch_flag())
        send_weights(r);
    if (w >= 0) {
        simulate_task(r, w);
        account_queued(r, w);
    }
    ddp__task_group_add(r->group, -1);
}
