/* codelets.c - from ops.h and the backends' tables to StarPU codelets */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets.h"
#ifdef STARPU_SIMGRID
#include "sim/sim.h"
#else
#include "cpu.h"
#include "ref.h"
#endif

/* The only list of devices: what a CPU worker prefers comes first. */
#ifdef STARPU_SIMGRID
const struct ddp__backend *const ddp__backends[] = {&ddp__sim_cpu, NULL};
#else
const struct ddp__backend *const ddp__backends[] = {&ddp__cpu, &ddp__ref, NULL};
#endif

static const char *const op_name[] = {
#define X(id, name) #name,
    DDP__OPS(X)
#undef X
};

/* One per operation, and one for tasks of several. */
enum { SEVERAL = DDP__OP_COUNT, CODELETS };
static struct starpu_codelet cl[CODELETS];
static struct starpu_perfmodel model[CODELETS];

/* For each kind of worker that there is, its backends in order of preference,
 * NULL at the end. */
static const struct ddp__backend *const *usable[DDP__KINDS];
static const struct ddp__backend *cuda[2];
static bool hybrid; /* CPU workers run what GPUs could */

/* cl_arg of every task. */
struct run {
    struct ddp__flow *flow;
    struct ddp__sched_tag tag;
    int64_t step;
    bool always;
    double begin; /* asynchronous: when its kernels were queued; else 0 */
    starpu_data_handle_t weights; /* that it updates; NULL: none */
    int calls;
    struct called {
        struct ddp__task task;
        int at[DDP_MAX_BUFFERS]; /* which of the task's each buffer is */
    } call[];
};

double ddp__now(void)
{
    return 1e-6 * starpu_timing_now();
}

/* ---- first failure ------------------------------------------------------ */

int ddp__flow_init(struct ddp__flow *f)
{
    memset(f, 0, sizeof(*f));
    f->failed_step = -1;
    f->updated_step = -1;
    if (pthread_mutex_init(&f->lock, NULL) != 0)
        return ddp__fail(DDP_ENOMEM, "no mutex to be had");
    return 0;
}

void ddp__flow_fini(struct ddp__flow *f)
{
    pthread_mutex_destroy(&f->lock);
}

void ddp__flow_fail(struct ddp__flow *f, int64_t step, int rc, const char *op,
                    const char *device)
{
    pthread_mutex_lock(&f->lock);
    if (atomic_load(&f->rc) == 0 || step < atomic_load(&f->failed_step)) {
        snprintf(f->message, sizeof(f->message), "step %lld, %s on %s: %s",
                 (long long)step, op, device, ddp_errmsg());
        atomic_store(&f->failed_step, step);
        atomic_store(&f->rc, rc);
    }
    pthread_mutex_unlock(&f->lock);
}

int ddp__flow_error(struct ddp__flow *f)
{
    int rc = atomic_load(&f->rc);

    if (rc == 0)
        return 0;
    pthread_mutex_lock(&f->lock);
    ddp__fail(rc, "%s", f->message);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

/* ---- running a task ----------------------------------------------------- */

static int run_host(const struct ddp__task *t)
{
    return t->call->host.fn(t, t->call->host.arg);
}

/* That of the worker that calls. */
static void *stream(enum ddp__kind kind)
{
#ifdef STARPU_USE_CUDA
    return kind == DDP__CUDA ? starpu_cuda_get_local_stream() : NULL;
#else
    (void)kind;
    return NULL;
#endif
}

static ddp_kernel_f user_kernel(const struct ddp__call *c, enum ddp__kind kind)
{
    return kind == DDP__CUDA ? c->user.kernel->cuda : c->user.kernel->cpu;
}

static int run_user(const struct ddp__task *t, enum ddp__kind kind)
{
    const struct ddp__call *c = t->call;
    struct ddp_kernel_args a = {
        .n = t->n,
        .buffers = c->buffers,
        .accumulate = t->accumulate,
        .stream = stream(kind),
        .arg = c->user.arg,
    };
    int rc;

    for (int i = 0; i < c->buffers; i++)
        a.buf[i] =
            (struct ddp_buffer){t->data[i], c->buf[i].type, c->buf[i].shape};
    if ((rc = user_kernel(c, kind)(&a)) != 0)
        return ddp__fail(DDP_EDEVICE, "kernel %s returned %d",
                         c->user.kernel->name, rc);
    return 0;
}

static int run_kernel(const struct ddp__task *t, enum ddp__kind kind)
{
    switch (t->call->op) {
    case DDP__OP_HOST:
        return run_host(t);
    case DDP__OP_USER:
        return run_user(t, kind);
    default:
        return t->call->on[kind].backend->kernel[t->call->op](t);
    }
}

/* Book a task that ran from begin to end on worker w. */
static void account(struct run *r, int w, double begin, double end)
{
    struct ddp__busy *b = &r->flow->busy[w % DDP__MAX_WORKERS];

    if (r->tag.kind == DDP__SCHED_INPUT)
        b->data_s += end - begin;
    if (r->tag.kind == DDP__SCHED_LANE && b->last_lane == r->tag.lane &&
        b->last_step == r->tag.step && b->tasks)
        b->gap_s += begin - b->last_end;
    b->exec_s += end - begin;
    b->last_end = end;
    b->last_lane = r->tag.kind == DDP__SCHED_LANE ? r->tag.lane : -1;
    b->last_step = r->tag.step;
    b->tasks++;
}

/* Which device it was, for messages: GPUs have names. */
static const char *device(const struct ddp__call *c, enum ddp__kind kind)
{
    static _Thread_local char name[128];

    if (kind == DDP__CPU)
        return c->on[kind].backend ? c->on[kind].backend->name : "host";
    starpu_worker_get_name(starpu_worker_get_id(), name, sizeof(name));
    return name;
}

/* Note who met the first number that is not finite; data are on the host. */
static void look(struct ddp__flow *f, const struct ddp__task *t, int worker)
{
    const double *value = t->call->op == DDP__OP_LOSS     ? t->data[3]
                          : t->call->op == DDP__OP_SQNORM ? t->data[2]
                                                          : NULL;
    int nobody = 0;

    /* The first entry is the sum of losses, or of squares. */
    if (value && !isfinite(value[0]))
        atomic_compare_exchange_strong(&f->seen_by, &nobody, worker + 1);
}

/* Is this task part of a step that failed, or of one after it?  What comes
 * before is finished, so that the weights are those of a whole step. */
static bool is_void(const struct run *r)
{
    return !r->always && atomic_load(&r->flow->rc) != 0 &&
           r->step >= atomic_load(&r->flow->failed_step);
}

static void run_call(void *buffers[], struct run *r, struct called *one,
                     enum ddp__kind kind)
{
    struct ddp__task *t = &one->task;
    const struct ddp__call *c = t->call;
    int rc;

    for (int i = 0; i < c->buffers; i++)
        t->data[i] = (char *)STARPU_VARIABLE_GET_PTR(buffers[one->at[i]]) +
                     c->buf[i].offset;
    t->plan = c->on[kind].plan;
    if (c->op == DDP__OP_OPTIM)
        atomic_store(&r->flow->updated_step, r->step);
    if ((rc = run_kernel(t, kind)) < 0)
        ddp__flow_fail(r->flow, r->step, rc,
                       c->op == DDP__OP_USER ? c->user.kernel->name
                                             : op_name[c->op],
                       device(c, kind));
    else if (kind == DDP__CPU)
        look(r->flow, t, starpu_worker_get_id());
}

static void run(void *buffers[], struct run *r, enum ddp__kind kind)
{
    double begin = ddp__now();

    if (is_void(r))
        return; /* let the rest of a failed step drain */
    for (int i = 0; i < r->calls && !is_void(r); i++)
        run_call(buffers, r, &r->call[i], kind);
    if (kind == DDP__CPU)
        account(r, starpu_worker_get_id(), begin, ddp__now());
    else
        r->begin = begin;
}

static void run_cpu(void *buffers[], void *arg)
{
    run(buffers, arg, DDP__CPU);
}

#if defined(STARPU_USE_CUDA) || defined(STARPU_SIMGRID)
static void run_cuda(void *buffers[], void *arg)
{
    run(buffers, arg, DDP__CUDA);
}
#endif

/* ---- codelets ----------------------------------------------------------- */

double ddp__call_flops(const struct ddp__call *c, int n)
{
    const struct ddp__view *x = &c->buf[0], *y = &c->buf[2];
    double per_pixel;

    if (c->op < DDP__OP_CONV_FWD || c->op > DDP__OP_DENSE_BWD_W)
        return 0;
    if (c->op == DDP__OP_CONV_BWD_X || c->op == DDP__OP_DENSE_BWD_X)
        x = &c->buf[2], y = &c->buf[0];
    if (c->op == DDP__OP_CONV_BWD_W || c->op == DDP__OP_DENSE_BWD_W)
        y = &c->buf[1];
    per_pixel = 2.0 * x->shape.c * y->shape.c;
    if (c->op <= DDP__OP_CONV_BWD_W)
        per_pixel *= (double)c->conv.kh * c->conv.kw / c->conv.groups;
    return per_pixel * y->shape.h * y->shape.w * n;
}

struct ddp__speed ddp__speed[DDP__KINDS] = {
    [DDP__CPU] = {.begin_us = 1, .flops = 100e9, .bytes = 10e9},
    [DDP__CUDA] = {.begin_us = 5, .flops = 300e12, .bytes = 3e12},
};

static double call_us(const struct ddp__call *c, int n, enum ddp__kind kind)
{
    const struct ddp__speed *s = &ddp__speed[kind];
    double bytes = 0;

    for (int i = 0; i < c->buffers; i++) {
        const struct ddp__view *v = &c->buf[i];

        bytes += (double)(v->per_sample ? n : 1) * v->shape.h * v->shape.w *
                 v->shape.c * (double)ddp__dtype_size(v->type);
    }
    return s->begin_us +
           1e6 * (ddp__call_flops(c, n) / s->flops + bytes / s->bytes);
}

double ddp__call_us(const struct ddp__call *c, int n)
{
    return call_us(c, n, usable[DDP__CUDA] ? DDP__CUDA : DDP__CPU);
}

static double run_us(const struct run *r, enum ddp__kind kind)
{
    double us = 0;

    for (int i = 0; i < r->calls; i++)
        us += call_us(r->call[i].task.call, r->call[i].task.n, kind);
    return us;
}

/* Microseconds a task takes, for the policies that ask.  StarPU's own, measured
 * models would have to be calibrated, and 1.3 aborts when two workers begin
 * with one at the same time. */
static double cost(struct starpu_task *task, struct starpu_perfmodel_arch *arch,
                   unsigned nimpl)
{
    bool gpu = arch->ndevices > 0 && arch->devices[0].type != STARPU_CPU_WORKER;

    (void)nimpl;
    return run_us(task->cl_arg, gpu ? DDP__CUDA : DDP__CPU);
}

/* All GPUs will want weights that have been updated: send them at once. */
static void spread(starpu_data_handle_t weights)
{
    for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++)
        if (starpu_node_get_kind(i) == STARPU_CUDA_RAM)
            starpu_data_prefetch_on_node(weights, i, 1);
}

/* The end of a GPU's task.  What was queued behind another one began when that
 * one ended.  A simulated one was not run: it has taken what it costs. */
static void ended(void *arg)
{
    struct run *r = arg;
    int w = starpu_worker_get_id();
    double before;

#ifdef STARPU_SIMGRID
    r->begin = ddp__now() - 1e-6 * run_us(r, DDP__CUDA);
    ddp__sim_ended(&r->tag, w, 1e-6 * run_us(r, DDP__CUDA));
#endif
    if (r->weights && starpu_get_prefetch_flag())
        spread(r->weights);
    if (r->begin == 0 || w < 0)
        return;
    before = r->flow->busy[w % DDP__MAX_WORKERS].last_end;
    account(r, w, r->begin > before ? r->begin : before, ddp__now());
}

static void make_codelets(void)
{
    for (int op = 0; op < CODELETS; op++) {
        memset(&cl[op], 0, sizeof(cl[op]));
        memset(&model[op], 0, sizeof(model[op]));
        cl[op].name = op == SEVERAL ? "segment" : op_name[op];
        model[op].type = STARPU_PER_ARCH;
        model[op].symbol = cl[op].name;
        model[op].arch_cost_function = cost;
        cl[op].model = &model[op];
        cl[op].cpu_funcs[0] = run_cpu;
        cl[op].cpu_funcs_name[0] = "run_cpu";
        cl[op].nbuffers = STARPU_VARIABLE_NBUFFERS;
        cl[op].where = STARPU_CPU;
#if defined(STARPU_USE_CUDA) || defined(STARPU_SIMGRID)
        cl[op].cuda_funcs[0] = run_cuda;
        cl[op].cuda_flags[0] = STARPU_CUDA_ASYNC;
        cl[op].where |= usable[DDP__CUDA] ? STARPU_CUDA : 0;
#endif
    }
    cl[DDP__OP_HOST].flags = STARPU_CODELET_SIMGRID_EXECUTE;
}

static int find_backends(const char *name, const struct ddp__backend *gpu)
{
    memset(usable, 0, sizeof(usable));
    cuda[0] = gpu;
    if (gpu)
        usable[DDP__CUDA] = cuda;
    usable[DDP__CPU] = ddp__backends;
    if (!name)
        return 0;
    for (; *usable[DDP__CPU]; usable[DDP__CPU]++)
        if (strcmp((*usable[DDP__CPU])->name, name) == 0)
            return 0;
    return ddp__fail(DDP_EINVAL, "backend %s: choose one of cpu, ref", name);
}

static int init_kind(const struct ddp__backend *const *list)
{
    const struct ddp__backend *const *b;
    int rc;

    for (b = list; b && *b; b++)
        if ((*b)->init && (rc = (*b)->init()) < 0)
            goto fini;
    return 0;

fini:
    while (b-- > list)
        if ((*b)->fini)
            (*b)->fini();
    return rc;
}

static void fini_kind(enum ddp__kind k)
{
    for (const struct ddp__backend *const *b = usable[k]; b && *b; b++)
        if ((*b)->fini)
            (*b)->fini();
    usable[k] = NULL;
}

int ddp__codelets_init(const char *name, const struct ddp__backend *gpu)
{
    const char *both = getenv("DDP_HYBRID");
    int rc;

    if ((rc = find_backends(name, gpu)) < 0)
        return rc;
    hybrid = both && strcmp(both, "1") == 0;
    make_codelets();
    if ((rc = init_kind(usable[DDP__CPU])) < 0)
        return rc;
    if ((rc = init_kind(usable[DDP__CUDA])) < 0)
        fini_kind(DDP__CPU);
    return rc;
}

void ddp__codelets_fini(void)
{
    fini_kind(DDP__CUDA);
    fini_kind(DDP__CPU);
}

/* The first backend of the kind of worker that trains. */
static const struct ddp__backend *first(void)
{
    return usable[DDP__CUDA] ? *usable[DDP__CUDA] : *usable[DDP__CPU];
}

const char *ddp__codelets_describe(enum ddp__kind k)
{
    const struct ddp__backend *b = usable[k] ? *usable[k] : NULL;

    return !b ? "" : b->describe ? b->describe() : b->name;
}

bool ddp__codelets_hybrid(void)
{
    return hybrid;
}

static bool computes_in(const struct ddp__backend *b, enum ddp_dtype type)
{
    return type == DDP_F32 || (type == DDP_BF16 && b->bf16) ||
           (type == DDP_F16 && b->f16);
}

bool ddp__codelets_type(enum ddp_dtype type)
{
    return computes_in(first(), type) &&
           (!hybrid || computes_in(*usable[DDP__CPU], type));
}

int ddp__codelets_ready(void)
{
    int rc = 0;

    starpu_task_wait_for_all();
    for (int k = 0; rc == 0 && k < DDP__KINDS; k++)
        for (const struct ddp__backend *const *b = usable[k]; b && *b; b++)
            if ((*b)->ready && (rc = (*b)->ready()) < 0)
                break;
    return rc;
}

size_t ddp__codelets_scratch(void)
{
    const struct ddp__backend *b = usable[DDP__CUDA] ? cuda[0] : NULL;

    return b && b->scratch ? b->scratch() : 0;
}

void ddp__calls_warm(const struct ddp__call *const *c, int calls)
{
    for (int k = 0; k < DDP__KINDS; k++)
        for (const struct ddp__backend *const *b = usable[k]; b && *b; b++)
            if ((*b)->warm)
                (*b)->warm(c, calls);
}

/* Have the first backend of a kind that can do so prepare the call. */
static int prepare_on(struct ddp__call *c, enum ddp__kind k)
{
    struct ddp__choice *on = &c->on[k];
    int rc;

    for (const struct ddp__backend *const *b = usable[k]; b && *b; b++) {
        if (!(*b)->kernel[c->op])
            continue;
        on->backend = *b;
        rc = (*b)->prepare ? (*b)->prepare(c, &on->plan) : 0;
        if (rc != DDP_ENODEV)
            return rc;
        *on = (struct ddp__choice){NULL, NULL};
    }
    return DDP_ENODEV;
}

/* On GPUs, if it can and unless CPU workers shall help, so that the bits are
 * those of one kind of device. */
uint32_t ddp__call_where(const struct ddp__call *c)
{
    bool user = c->op == DDP__OP_USER;
    bool gpu = usable[DDP__CUDA] && (user ? c->user.kernel->cuda != NULL
                                          : c->on[DDP__CUDA].backend != NULL);
    bool cpu = user ? c->user.kernel->cpu != NULL
                    : c->op == DDP__OP_HOST || c->on[DDP__CPU].backend;

    if (c->op == DDP__OP_HOST && !c->host.fn)
        return STARPU_NOWHERE;
    if (gpu && !hybrid)
        return STARPU_CUDA;
    return (gpu ? STARPU_CUDA : 0) | (cpu ? STARPU_CPU : 0);
}

/* What is not worth a GPU's time: a few numbers, for the host to look at. */
static bool is_small(const struct ddp__call *c)
{
    return c->op == DDP__OP_MERGE_STATS;
}

int ddp__call_prepare(struct ddp__call *c)
{
    int rc = DDP_ENODEV;

    memset(c->on, 0, sizeof(c->on));
    if (c->op == DDP__OP_HOST)
        return 0;
    if (c->op == DDP__OP_USER)
        return ddp__call_where(c) ? 0
                                  : ddp__fail(DDP_ENODEV,
                                              "kernel %s has no function for "
                                              "the workers there are",
                                              c->user.kernel->name);
    if (!is_small(c) && (rc = prepare_on(c, DDP__CUDA)) < 0 && rc != DDP_ENODEV)
        return rc;
    if (rc == 0 && !hybrid)
        return 0;
    if ((rc = prepare_on(c, DDP__CPU)) < 0 && rc != DDP_ENODEV)
        return rc;
    return ddp__call_where(c)
               ? 0
               : ddp__fail(DDP_ENODEV, "no backend can run %s", op_name[c->op]);
}

void ddp__call_release(struct ddp__call *c)
{
    for (int k = 0; k < DDP__KINDS; k++) {
        struct ddp__choice *on = &c->on[k];

        if (on->plan)
            on->backend->release(on->plan);
        *on = (struct ddp__choice){NULL, NULL};
    }
}

/* ---- submission --------------------------------------------------------- */

static int count_buffers(const struct ddp__submit *s)
{
    int n = 0;

    for (int i = 0; i < s->parts; i++)
        n += s->part[i].task.call->buffers;
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

/* A mode for both accesses, the one by `a` being first: what is written first
 * need not be fetched. */
static enum starpu_data_access_mode both(enum starpu_data_access_mode a,
                                         enum starpu_data_access_mode b)
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
        mode = both(STARPU_TASK_GET_MODE(task, i), mode);
    else
        task->nbuffers++;
    STARPU_TASK_SET_HANDLE(task, h, i);
    STARPU_TASK_SET_MODE(task, mode, i);
    return i;
}

/* Contents are identified as a call will find them: what the task itself wrote
 * before is another version. */
static void fill_call(struct starpu_task *task, struct called *one,
                      const struct ddp__part *p)
{
    one->task = p->task;
    for (int i = 0; i < p->task.call->buffers; i++) {
        if (p->mode[i] & STARPU_W)
            p->buf[i]->version++;
        one->task.id[i] = p->buf[i]->id;
        one->task.version[i] = p->buf[i]->version;
        one->at[i] = add_buffer(task, p->buf[i]->h, p->mode[i]);
    }
}

static struct run *run_new(struct starpu_task *task,
                           const struct ddp__submit *s)
{
    struct run *r =
        malloc(sizeof(*r) + (size_t)s->parts * sizeof(struct called));

    if (!r || !make_room(task, count_buffers(s))) {
        free(r);
        return NULL;
    }
    *r = (struct run){.flow = s->flow,
                      .tag = s->tag,
                      .step = s->step,
                      .always = s->always,
                      .calls = s->parts};
    r->tag.magic = DDP__SCHED_MAGIC;
    for (int i = 0; i < s->parts; i++)
        fill_call(task, &r->call[i], &s->part[i]);
    if (s->part[0].task.call->op == DDP__OP_OPTIM)
        r->weights = s->part[0].buf[1]->h;
    return r;
}

/* What StarPU did not take. */
static void destroy(struct starpu_task *task)
{
    task->destroy = 0;
    starpu_task_destroy(task);
}

static uint32_t where_all(const struct ddp__submit *s)
{
    uint32_t all = ddp__call_where(s->part[0].task.call);

    for (int i = 1; i < s->parts; i++)
        all &= ddp__call_where(s->part[i].task.call);
    return all;
}

int ddp__submit(const struct ddp__submit *s)
{
    int op = s->parts == 1 ? (int)s->part[0].task.call->op : SEVERAL, rc;
    struct starpu_task *task = starpu_task_create();
    struct run *r;

    if (!task)
        return ddp__fail(DDP_ENOMEM, "no memory for a task");
    task->cl = &cl[op];
    if (!(r = run_new(task, s))) {
        destroy(task);
        return ddp__fail(DDP_ENOMEM, "no memory for a task");
    }
    task->name = cl[op].name;
    task->cl_arg = r;
    task->cl_arg_size = sizeof(*r);
    task->cl_arg_free = 1;
    task->sched_data = &r->tag;
    task->where = where_all(s);
    if (task->where & STARPU_CUDA) {
        task->callback_func = ended;
        task->callback_arg = r;
    }
    task->priority = s->priority;
    if ((rc = starpu_task_submit(task)) == 0)
        return 0;
    destroy(task);
    return ddp__fail(DDP_ENODEV, "%s: no worker can run it (%s)", cl[op].name,
                     strerror(-rc));
}
