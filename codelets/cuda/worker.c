/* worker.c - what each CUDA worker has: handles, scratch; and status checks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <starpu.h>

#include "base/error.h"
#include "dnn_plan.h"
#include "weights.h"
#include "worker.h"

static struct ddp__cuda_worker worker[STARPU_NMAXWORKERS]; /* by StarPU's id */
static _Thread_local struct ddp__cuda_worker *entered;     /* without StarPU */
static atomic_size_t wanted, wanted_sums;                  /* of scratch */
static size_t taken; /* by others, of what StarPU counts on */

/* ---- status ------------------------------------------------------------- */

int ddp__cuda_check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return 0;
    return ddp__fail(e == cudaErrorMemoryAllocation ? DDP_ENOMEM : DDP_EDEVICE,
                     "%s: %s", what, cudaGetErrorString(e));
}

int ddp__cudnn_check(cudnnStatus_t e, const char *what)
{
    char why[256] = "";

    if (e == CUDNN_STATUS_SUCCESS)
        return 0;
    cudnnGetLastErrorString(why, sizeof(why));
    return ddp__fail(DDP_EDEVICE, "%s: %s%s%s", what, cudnnGetErrorString(e),
                     why[0] ? ", " : "", why);
}

int ddp__cublas_check(cublasStatus_t e, const char *what)
{
    if (e == CUBLAS_STATUS_SUCCESS)
        return 0;
    return ddp__fail(DDP_EDEVICE, "%s: %s", what, cublasLtGetStatusString(e));
}

/* ---- one worker --------------------------------------------------------- */

void ddp__cuda_account(size_t size)
{
    int id = starpu_worker_get_id();

    if (id >= 0)
        starpu_memory_allocate(starpu_worker_get_memory_node((unsigned)id),
                               size, STARPU_MEMORY_OVERFLOW);
}

/* The calling thread's device is current; the stream is the caller's. */
static int handles_new(struct ddp__cuda_worker *w, int device, int number,
                       cudaStream_t stream)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    int rc;

    *w = (struct ddp__cuda_worker){
        .device = device, .number = number, .stream = stream};
    if (device >= DDP__CUDA_DEVICES)
        return ddp__fail(DDP_ENODEV, "GPU %d: only those below %d can be used",
                         device, DDP__CUDA_DEVICES);
    if (number >= DDP__CUDA_WORKERS)
        return ddp__fail(DDP_ENODEV,
                         "%d GPU workers are the most that can be used: set "
                         "STARPU_NWORKER_PER_CUDA to fewer",
                         DDP__CUDA_WORKERS);
    pthread_mutex_lock(&one_at_a_time);
    rc = ddp__cudnn_check(cudnnCreate(&w->dnn), "starting cuDNN");
    if (rc == 0)
        rc = ddp__cudnn_check(cudnnSetStream(w->dnn, stream),
                              "giving cuDNN a stream");
    if (rc == 0)
        rc = ddp__cublas_check(cublasLtCreate(&w->blas), "starting cuBLASLt");
    pthread_mutex_unlock(&one_at_a_time);
    return rc;
}

static void scratch_free(struct ddp__cuda_worker *w)
{
    if (w->scratch)
        cudaFree(w->scratch);
    w->scratch = w->sums = NULL;
    w->scratch_size = w->sums_size = 0;
}

static int handles_free(struct ddp__cuda_worker *w)
{
    scratch_free(w);
    if (w->dnn)
        cudnnDestroy(w->dnn);
    if (w->blas)
        cublasLtDestroy(w->blas);
    memset(w, 0, sizeof(*w));
    return 0;
}

static int scratch_new(struct ddp__cuda_worker *w, size_t size, size_t sums)
{
    if (cudaMalloc(&w->scratch, size + sums) != cudaSuccess) {
        cudaGetLastError(); /* it would come up again later */
        w->scratch = NULL;
        return DDP_ENOMEM;
    }
    w->scratch_size = size;
    w->sums = (char *)w->scratch + size;
    w->sums_size = sums;
    return 0;
}

/* As much scratch as was asked for.  Nothing of this worker is running but,
 * perhaps, what is on its stream. */
static int scratch_grow(struct ddp__cuda_worker *w)
{
    size_t size = atomic_load(&wanted), sums = atomic_load(&wanted_sums);
    size_t old_size = w->scratch_size, old_sums = w->sums_size;
    char what[40];
    int rc;

    if (size <= old_size && sums <= old_sums)
        return 0;
    snprintf(what, sizeof(what), "waiting for GPU %d", w->device);
    rc = ddp__cuda_check(cudaStreamSynchronize(w->stream), what);
    if (rc < 0)
        return rc;
    scratch_free(w);
    if (scratch_new(w, size, sums) == 0) {
        ddp__cuda_account(size + sums - old_size - old_sums);
        return 0;
    }
    if (old_size + old_sums > 0)
        scratch_new(w, old_size, old_sums); /* for those content with it */
    return ddp__fail(DDP_ENOMEM,
                     "GPU %d has no %.0f MiB left for scratch: a smaller "
                     "sub-batch needs less",
                     w->device, (double)(size + sums) / (1 << 20));
}

static void raise_to(atomic_size_t *most, size_t size)
{
    size_t old = atomic_load(most);

    size = (size + 255) & ~(size_t)255;
    while (size > old && !atomic_compare_exchange_weak(most, &old, size))
        ;
}

void ddp__cuda_want_scratch(size_t size)
{
    raise_to(&wanted, size);
}

void ddp__cuda_want_sums(size_t size)
{
    raise_to(&wanted_sums, size);
}

size_t ddp__cuda_scratch_wanted(void)
{
    return atomic_load(&wanted) + atomic_load(&wanted_sums);
}

struct ddp__cuda_worker *ddp__cuda_self(void)
{
    int id = starpu_worker_get_id();
    struct ddp__cuda_worker *w = id < 0 ? entered : &worker[id];

    if (w && w->dnn)
        return w;
    ddp__fail(DDP_ENODEV, "a CUDA kernel was called where no GPU is at hand");
    return NULL;
}

int ddp__cuda_devices(int device[DDP__CUDA_DEVICES])
{
    int n = 0, k;

    if (entered)
        device[n++] = entered->device;
    for (int i = 0; i < STARPU_NMAXWORKERS && !entered; i++) {
        if (!worker[i].dnn)
            continue;
        for (k = 0; k < n && device[k] != worker[i].device; k++)
            ;
        if (k == n)
            device[n++] = worker[i].device;
    }
    return n;
}

int ddp__cuda_first_device(void)
{
    int device[DDP__CUDA_DEVICES];

    return ddp__cuda_devices(device) > 0 ? device[0] : -1;
}

void ddp__cuda_use_device(void)
{
    int id = starpu_worker_get_id(), device = ddp__cuda_first_device();

    if (device >= 0 &&
        (id < 0 || starpu_worker_get_type(id) != STARPU_CUDA_WORKER))
        cudaSetDevice(device);
}

/* ---- all workers -------------------------------------------------------- */

size_t ddp__cuda_memory_taken(void)
{
    return taken;
}

#ifdef STARPU_USE_CUDA
static bool counted[DDP__CUDA_DEVICES]; /* what others have of it */

/* A visit to each worker, and the first failure. */
struct visit {
    int (*fn)(struct ddp__cuda_worker *w);
    pthread_mutex_t lock;
    int rc;
    char message[512];
};

static void visit_one(void *arg)
{
    struct visit *v = arg;
    int rc = v->fn(&worker[starpu_worker_get_id()]);

    pthread_mutex_lock(&v->lock);
    if (rc < 0 && v->rc == 0) {
        v->rc = rc;
        snprintf(v->message, sizeof(v->message), "%s", ddp_errmsg());
    }
    pthread_mutex_unlock(&v->lock);
}

static int visit_workers(int (*fn)(struct ddp__cuda_worker *w))
{
    struct visit v = {.fn = fn, .lock = PTHREAD_MUTEX_INITIALIZER};

    if (starpu_cuda_worker_get_count() == 0)
        return 0;
    starpu_execute_on_each_worker(visit_one, &v, STARPU_CUDA);
    return v.rc < 0 ? ddp__fail(v.rc, "%s", v.message) : 0;
}

/* StarPU takes nine tenths of a GPU for its own, whoever else is there, and
 * blocks forever for memory it cannot get, so it learns what others use.  A
 * twentieth of what is left is for code that is loaded later. */
static void count_others(const struct ddp__cuda_worker *w)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    unsigned node =
        starpu_worker_get_memory_node((unsigned)starpu_worker_get_id());
    double counts_on = (double)starpu_memory_get_total(node), is_left;
    size_t left, all;

    pthread_mutex_lock(&lock);
    if (!counted[w->device] && cudaMemGetInfo(&left, &all) == cudaSuccess &&
        (is_left = 0.95 * (double)left) < counts_on) {
        size_t size = (size_t)(counts_on - is_left);

        ddp__cuda_account(size);
        taken = size > taken ? size : taken;
    }
    counted[w->device] = true;
    pthread_mutex_unlock(&lock);
}

static int number_of(int id)
{
    int number = 0;

    for (int i = 0; i < id; i++)
        number += starpu_worker_get_type(i) == STARPU_CUDA_WORKER;
    return number;
}

static int open_worker(struct ddp__cuda_worker *w)
{
    int id = starpu_worker_get_id();
    int rc = handles_new(w, starpu_worker_get_devid(id), number_of(id),
                         starpu_cuda_get_local_stream());

    if (rc == 0)
        count_others(w);
    return rc;
}

int ddp__cuda_workers_open(void)
{
    taken = 0;
    memset(counted, 0, sizeof(counted));
    return visit_workers(open_worker);
}

/* Nothing is running: what was derived from weights may be of chains that are
 * gone. */
static int ready_worker(struct ddp__cuda_worker *w)
{
    ddp__cuda_weights_forget(w->device, false);
    ddp__cudnn_plans_for(w);
    return scratch_grow(w);
}

int ddp__cuda_workers_ready(void)
{
    return visit_workers(ready_worker);
}

static int close_worker(struct ddp__cuda_worker *w)
{
    ddp__cuda_weights_forget(w->device, true);
    return handles_free(w);
}

void ddp__cuda_workers_close(void)
{
    visit_workers(close_worker);
}
#else
/* A StarPU without CUDA has no such workers. */
int ddp__cuda_workers_open(void)
{
    return 0;
}

int ddp__cuda_workers_ready(void)
{
    return 0;
}

void ddp__cuda_workers_close(void)
{
}
#endif

/* ---- a thread that is no worker ----------------------------------------- */

int ddp__cuda_enter(struct ddp__cuda_worker *w, int device)
{
    cudaStream_t stream;
    int rc;

    if ((rc = ddp__cuda_check(cudaSetDevice(device), "choosing a GPU")) < 0 ||
        (rc = ddp__cuda_check(
             cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
             "making a stream")) < 0)
        return rc;
    entered = w;
    return handles_new(w, device, device, stream);
}

int ddp__cuda_enter_ready(void)
{
    return entered ? scratch_grow(entered) : 0;
}

void ddp__cuda_leave(void)
{
    cudaStream_t stream = entered ? entered->stream : NULL;

    if (!entered)
        return;
    cudaStreamSynchronize(stream);
    handles_free(entered);
    cudaStreamDestroy(stream);
    entered = NULL;
}
