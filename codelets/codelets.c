/* codelets.c - from ops.h and the backends' tables to StarPU codelets */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codelets.h"
#include "cpu.h"
#include "ref.h"

/* The only list of devices: what a CPU worker prefers comes first. */
const struct ddp__backend *const ddp__backends[] = {&ddp__cpu, &ddp__ref, NULL};

static const char *const op_name[] = {
#define X(id, name) #name,
    DDP__OPS(X)
#undef X
};

static struct starpu_codelet cl[DDP__OP_COUNT];
static struct starpu_perfmodel model[DDP__OP_COUNT];
static const struct ddp__backend *const *usable; /* into ddp__backends */

/* cl_arg of every task. */
struct run {
    struct ddp__task task;
    struct ddp__flow *flow;
    struct ddp__sched_tag tag;
    int64_t step;
    bool always;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- first failure ------------------------------------------------------ */

int ddp__flow_init(struct ddp__flow *f)
{
    memset(f, 0, sizeof(*f));
    f->failed_step = f->updated_step = -1;
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
    if (atomic_load(&f->rc) == 0) {
        snprintf(f->message, sizeof(f->message), "step %lld, %s on %s: %s",
                 (long long)step, op, device, ddp_errmsg());
        f->failed_step = step;
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

static int run_user(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    struct ddp_kernel_args a = {
        .n = t->n,
        .buffers = c->buffers,
        .accumulate = t->accumulate,
        .arg = c->user.arg,
    };
    int rc;

    for (int i = 0; i < c->buffers; i++)
        a.buf[i] =
            (struct ddp_buffer){t->data[i], c->buf[i].type, c->buf[i].shape};
    if ((rc = c->user.kernel->cpu(&a)) != 0)
        return ddp__fail(DDP_EDEVICE, "kernel %s returned %d",
                         c->user.kernel->name, rc);
    return 0;
}

static int run_kernel(const struct ddp__task *t)
{
    switch (t->call->op) {
    case DDP__OP_HOST:
        return run_host(t);
    case DDP__OP_USER:
        return run_user(t);
    default:
        return t->call->backend->kernel[t->call->op](t);
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

static void run_cpu(void *buffers[], void *arg)
{
    struct run *r = arg;
    struct ddp__task *t = &r->task;
    const struct ddp__call *c = t->call;
    double begin = now();
    int rc;

    if (!r->always && atomic_load(&r->flow->rc) != 0)
        return; /* let the rest of a failed step drain */
    for (int i = 0; i < c->buffers; i++)
        t->data[i] =
            (char *)STARPU_VARIABLE_GET_PTR(buffers[i]) + c->buf[i].offset;
    if (c->op == DDP__OP_OPTIM)
        atomic_store(&r->flow->updated_step, r->step);
    if ((rc = run_kernel(t)) < 0)
        ddp__flow_fail(r->flow, r->step, rc,
                       c->op == DDP__OP_USER ? c->user.kernel->name
                                             : op_name[c->op],
                       c->backend ? c->backend->name : "host");
    account(r, starpu_worker_get_id(), begin, now());
}

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

/* Microseconds a task takes on a CPU, for the policies that ask: 100 GFLOP/s
 * and 10 GB/s.  StarPU's own, measured models would have to be calibrated, and
 * 1.3 aborts when two workers begin with one at the same time. */
static double cost(struct starpu_task *task, struct starpu_perfmodel_arch *arch,
                   unsigned nimpl)
{
    const struct run *r = task->cl_arg;
    const struct ddp__call *c = r->task.call;
    double bytes = 0;

    (void)arch;
    (void)nimpl;
    for (int i = 0; i < c->buffers; i++) {
        const struct ddp__view *v = &c->buf[i];

        bytes += (double)(v->per_sample ? r->task.n : 1) * v->shape.h *
                 v->shape.w * v->shape.c * (double)ddp__dtype_size(v->type);
    }
    return 1 + ddp__call_flops(c, r->task.n) / 100e3 + bytes / 10e3;
}

static void make_codelets(void)
{
    for (int op = 0; op < DDP__OP_COUNT; op++) {
        memset(&cl[op], 0, sizeof(cl[op]));
        memset(&model[op], 0, sizeof(model[op]));
        model[op].type = STARPU_PER_ARCH;
        model[op].symbol = op_name[op];
        model[op].arch_cost_function = cost;
        cl[op].name = op_name[op];
        cl[op].model = &model[op];
        cl[op].cpu_funcs[0] = run_cpu;
        cl[op].cpu_funcs_name[0] = "run_cpu";
        cl[op].nbuffers = STARPU_VARIABLE_NBUFFERS;
        cl[op].where = STARPU_CPU;
    }
}

static int find_backend(const char *name)
{
    usable = ddp__backends;
    if (!name)
        return 0;
    for (; *usable; usable++)
        if (strcmp((*usable)->name, name) == 0)
            return 0;
    return ddp__fail(DDP_EINVAL, "backend %s: choose one of cpu, ref", name);
}

int ddp__codelets_init(const char *name)
{
    const struct ddp__backend *const *b;
    int rc;

    if ((rc = find_backend(name)) < 0)
        return rc;
    make_codelets();
    for (b = usable; *b; b++)
        if ((*b)->init && (rc = (*b)->init()) < 0)
            goto fini;
    return 0;

fini:
    while (b-- > usable)
        if ((*b)->fini)
            (*b)->fini();
    return rc;
}

void ddp__codelets_fini(void)
{
    for (const struct ddp__backend *const *b = usable; b && *b; b++)
        if ((*b)->fini)
            (*b)->fini();
    usable = NULL;
}

const char *ddp__codelets_describe(void)
{
    return (*usable)->describe ? (*usable)->describe() : (*usable)->name;
}

bool ddp__codelets_bf16(void)
{
    return (*usable)->bf16;
}

int ddp__call_prepare(struct ddp__call *c)
{
    int rc;

    c->backend = NULL;
    if (c->op == DDP__OP_HOST || c->op == DDP__OP_USER)
        return 0;
    for (const struct ddp__backend *const *b = usable; *b; b++) {
        if (!(*b)->kernel[c->op])
            continue;
        c->backend = *b;
        rc = (*b)->prepare ? (*b)->prepare(c) : 0;
        if (rc != DDP_ENODEV)
            return rc;
    }
    return ddp__fail(DDP_ENODEV, "no backend can run %s", op_name[c->op]);
}

void ddp__call_release(struct ddp__call *c)
{
    if (c->backend && c->backend->release)
        c->backend->release(c);
    c->backend = NULL;
    c->plan = NULL;
}

/* ---- submission --------------------------------------------------------- */

static struct run *run_new(const struct ddp__submit *s)
{
    struct run *r = malloc(sizeof(*r));

    if (!r)
        return NULL;
    *r = (struct run){.task = s->task,
                      .flow = s->flow,
                      .tag = s->tag,
                      .step = s->step,
                      .always = s->always};
    r->tag.magic = DDP__SCHED_MAGIC;
    r->task.call = s->call;
    for (int i = 0; i < s->call->buffers; i++) {
        if (s->mode[i] & STARPU_W)
            s->buf[i]->version++;
        r->task.id[i] = s->buf[i]->id;
        r->task.version[i] = s->buf[i]->version;
    }
    return r;
}

int ddp__submit(struct ddp__submit *s)
{
    struct starpu_task *task = starpu_task_create();
    struct run *r = run_new(s);
    int rc;

    if (!task || !r) {
        free(r);
        return ddp__fail(DDP_ENOMEM, "no memory for a task");
    }
    task->cl = &cl[s->call->op];
    task->name = op_name[s->call->op];
    task->cl_arg = r;
    task->cl_arg_size = sizeof(*r);
    task->cl_arg_free = 1;
    task->sched_data = &r->tag;
    task->priority = s->priority;
    task->nbuffers = s->call->buffers;
    for (int i = 0; i < s->call->buffers; i++) {
        task->handles[i] = s->buf[i]->h;
        task->modes[i] = s->mode[i];
    }
    if ((rc = starpu_task_submit(task)) == 0)
        return 0;
    task->destroy = 0;
    starpu_task_destroy(task);
    return ddp__fail(DDP_ENODEV, "%s: no worker can run it (%s)",
                     op_name[s->call->op], strerror(-rc));
}
