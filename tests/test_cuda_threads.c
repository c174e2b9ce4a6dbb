/* test_cuda_threads.c - what threads do at the same time with cuDNN's plans
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * cuDNN and CUDA are played by what is below.  What should happen at the same
 * time waits until it does, at most for some seconds; what should not is
 * counted.
 */
#include "config.h"

#include "tap.h"

#ifndef HAVE_CUDA
int main(void)
{
    skip_all("built without CUDA");
}
#else
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cuda/dnn_tune.h"

enum { X = 1, Y, CONFIGS = 3, SECONDS = 3 };

/* ---- meeting ------------------------------------------------------------ */

/* A place in the code: who is there, and how many at a time there ever were. */
struct place {
    int want; /* wait for so many */
    int inside, most;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct place executing, compiling;

static void pass_through(struct place *p)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += SECONDS;
    pthread_mutex_lock(&lock);
    if (++p->inside > p->most)
        p->most = p->inside;
    pthread_cond_broadcast(&changed);
    while (p->most < p->want &&
           pthread_cond_timedwait(&changed, &lock, &end) == 0)
        ;
    p->inside--;
    pthread_mutex_unlock(&lock);
}

/* ---- cuDNN -------------------------------------------------------------- */

struct desc {
    cudnnBackendDescriptorType_t type;
    const void *pointer[2];
};

static int packs; /* that there are */
static bool no_text;
static _Thread_local struct desc ran; /* the last pack */
static _Thread_local const void *ran_plan;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    struct desc *d = calloc(1, sizeof(*d));

    if (!d)
        return CUDNN_STATUS_ALLOC_FAILED;
    d->type = type;
    *out = d;
    pthread_mutex_lock(&lock);
    packs += type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
    pthread_mutex_unlock(&lock);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
    struct desc *d = desc;

    pthread_mutex_lock(&lock);
    packs -= d->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
    pthread_mutex_unlock(&lock);
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *value)
{
    (void)type;
    if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS && count == 2)
        memcpy(((struct desc *)desc)->pointer, value, 2 * sizeof(void *));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t room, int64_t *count, void *out)
{
    (void)desc;
    (void)type;
    *count = 0;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        *count = CONFIGS;
        break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        *count = 1;
        break;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        if (no_text)
            return CUDNN_STATUS_NOT_SUPPORTED;
        *count = 4;
        if (room)
            memcpy(out, "plan", 4);
        break;
    default:
        break;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc)
{
    if (((struct desc *)desc)->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        pass_through(&compiling);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t p,
                                  cudnnBackendDescriptor_t pack)
{
    (void)h;
    ran = *(struct desc *)pack;
    ran_plan = p;
    pass_through(&executing);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *h)
{
    *h = NULL;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
    (void)h;
    (void)s;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
    (void)h;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t e)
{
    (void)e;
    return "a failure";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "%s", "");
}

int ddp__cudnn_check(cudnnStatus_t e, const char *what)
{
    return ddp__cudnn_status(e, what);
}

/* ---- CUDA --------------------------------------------------------------- */

static _Thread_local const void *fastest; /* plan */

cudaError_t cudaMalloc(void **p, size_t size)
{
    return (*p = malloc(size)) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}

#define NOTHING(name, ...)                                                     \
    cudaError_t name(__VA_ARGS__)                                              \
    {                                                                          \
        return cudaSuccess;                                                    \
    }
#define UNUSED __attribute__((unused))
NOTHING(cudaGetLastError, void)
NOTHING(cudaEventCreate, UNUSED cudaEvent_t *e)
NOTHING(cudaEventDestroy, UNUSED cudaEvent_t e)
NOTHING(cudaEventRecord, UNUSED cudaEvent_t e, UNUSED cudaStream_t s)
NOTHING(cudaEventSynchronize, UNUSED cudaEvent_t e)
NOTHING(cudaStreamCreateWithFlags, UNUSED cudaStream_t *s, UNUSED unsigned f)
NOTHING(cudaStreamDestroy, UNUSED cudaStream_t s)
NOTHING(cudaStreamSynchronize, UNUSED cudaStream_t s)
NOTHING(cudaMemsetAsync, UNUSED void *p, UNUSED int v, UNUSED size_t n,
        UNUSED cudaStream_t s)
NOTHING(cudaMemcpyAsync, UNUSED void *to, UNUSED const void *from,
        UNUSED size_t n, UNUSED enum cudaMemcpyKind k, UNUSED cudaStream_t s)

/* Of all plans that a thread runs, the second is the fastest. */
cudaError_t cudaEventElapsedTime(float *ms, UNUSED cudaEvent_t a,
                                 UNUSED cudaEvent_t b)
{
    static _Thread_local const void *before;
    static _Thread_local int plans;

    plans += ran_plan != before;
    before = ran_plan;
    if (plans == 2)
        fastest = ran_plan;
    *ms = plans == 2 ? 1 : 2;
    return cudaSuccess;
}

int ddp__cuda_check(cudaError_t e, const char *what)
{
    return e == cudaSuccess ? 0 : ddp__fail(DDP_EDEVICE, "%s", what);
}

/* ---- the target --------------------------------------------------------- */

static struct desc gpu, other;
struct ddp__cudnn_target ddp__cudnn_targets[DDP__CUDNN_TARGETS] = {
    {.prop = &gpu}};

ddp__cudnn_desc ddp__cudnn_target_other(const struct ddp__cudnn_target *t,
                                        int device)
{
    (void)t;
    return device ? &other : NULL;
}

/* ---- threads ------------------------------------------------------------ */

static char key[] = "a relu";

struct thread {
    pthread_t id;
    struct ddp__cudnn_plan *plan;
    struct ddp__cuda_worker worker;
    char x, y;      /* what is run on */
    struct desc on; /* what was run with */
    const void *ran_plan, *fastest;
    int rc;
};

static struct ddp__cudnn_graph *relu(void)
{
    struct ddp__cudnn_shape s = {CUDNN_DATA_FLOAT, 2, 3, 4, 8, DDP__CUDNN_REAL};
    struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();

    if (!g)
        bail_out("out of memory");
    ddp__cudnn_tensor(g, X, &s);
    ddp__cudnn_tensor(g, Y, &s);
    ddp__cudnn_relu(g, X, Y);
    return g;
}

static struct ddp__cudnn_plan plan_for(struct ddp__cudnn_graph *g)
{
    return (struct ddp__cudnn_plan){.target = ddp__cudnn_targets,
                                    .graph = g,
                                    .key = key,
                                    .lock = PTHREAD_MUTEX_INITIALIZER};
}

static void plan_drop(struct ddp__cudnn_plan *p)
{
    for (int i = 0; i < DDP__CUDA_WORKERS; i++)
        if (p->copy[i])
            cudnnBackendDestroyDescriptor(p->copy[i]);
    cudnnBackendDestroyDescriptor(p->desc);
    if (p->config)
        cudnnBackendDestroyDescriptor(p->config);
    ddp__cudnn_graph_free(p->graph);
}

static void *launch(void *arg)
{
    struct thread *t = arg;
    const void *ptr[DDP__CUDNN_MAX_TENSORS] = {[X] = &t->x, [Y] = &t->y};

    t->rc = ddp__cudnn_run(t->plan, &t->worker, ptr, NULL);
    t->on = ran;
    t->ran_plan = ran_plan;
    return NULL;
}

static void *tune(void *arg)
{
    struct thread *t = arg;

    t->rc = ddp__cudnn_build(t->plan, 1 << 20, true);
    t->fastest = fastest;
    return NULL;
}

static void run_threads(struct thread *t, int n, void *(*fn)(void *arg))
{
    for (int i = 0; i < n; i++)
        if (pthread_create(&t[i].id, NULL, fn, &t[i]) != 0)
            bail_out("no thread");
    for (int i = 0; i < n; i++)
        pthread_join(t[i].id, NULL);
}

/* ---- launches ----------------------------------------------------------- */

/* One plan by three workers, two of them of one GPU. */
static void test_launches(void)
{
    struct ddp__cudnn_plan p = plan_for(relu());
    struct thread t[] = {{.plan = &p, .worker = {.device = 0, .number = 0}},
                         {.plan = &p, .worker = {.device = 1, .number = 1}},
                         {.plan = &p, .worker = {.device = 1, .number = 2}}};
    bool own = true;

    compiling = (struct place){.want = 1};
    if (ddp__cudnn_build(&p, 1 << 20, false) < 0)
        bail_out("%s", ddp_errmsg());
    executing = (struct place){.want = 3};
    run_threads(t, 3, launch);
    is_int(executing.most, 3, "three workers launch a plan at the same time");
    for (int i = 0; i < 3; i++)
        own &= t[i].rc == 0 && t[i].on.pointer[0] == &t[i].x &&
               t[i].on.pointer[1] == &t[i].y;
    ok(own, "each with its own pointers");
    ok(t[0].ran_plan == p.desc && t[1].ran_plan != t[0].ran_plan &&
           t[2].ran_plan != t[0].ran_plan && t[1].ran_plan != t[2].ran_plan,
       "and with its own copy of the plan");
    is_int(packs, 0, "which are given back");
    plan_drop(&p);
}

/* A plan that cannot be copied. */
static void test_turns(void)
{
    struct ddp__cudnn_plan p = plan_for(relu());
    struct thread t[] = {{.plan = &p, .worker = {.device = 0, .number = 0}},
                         {.plan = &p, .worker = {.device = 1, .number = 1}}};

    if (ddp__cudnn_build(&p, 1 << 20, false) < 0)
        bail_out("%s", ddp_errmsg());
    no_text = true;
    ddp__cudnn_plan_for(&p, &t[1].worker);
    executing = (struct place){.want = 2};
    run_threads(t, 2, launch);
    is_int(executing.most, 1, "workers take turns where there is no copy");
    ok(t[1].rc == 0 && t[1].ran_plan == p.desc, "and all run the original");
    no_text = false;
    plan_drop(&p);
}

/* ---- choosing by stopwatch ---------------------------------------------- */

static void test_tuning(void)
{
    struct ddp__cudnn_plan p[] = {plan_for(relu()), plan_for(relu())};
    struct thread t[] = {{.plan = &p[0]}, {.plan = &p[1]}};

    ddp__cudnn_targets[0].fast = true;
    executing = (struct place){.want = 1};
    compiling = (struct place){.want = 2};
    run_threads(t, 2, tune);
    for (int i = 0; i < 2; i++)
        ok(t[i].rc == 0 && p[i].desc && p[i].desc == t[i].fastest &&
               p[i].config,
           "thread %d of two chooses the fastest of %d plans", i, CONFIGS);
    is_int(compiling.most, 2, "they compile at the same time");
    is_int(executing.most, 1, "and measure one after another");
    plan_drop(&p[0]);
    plan_drop(&p[1]);
}

int main(void)
{
    test_launches();
    test_turns();
    test_tuning();
    return done_testing();
}
#endif
