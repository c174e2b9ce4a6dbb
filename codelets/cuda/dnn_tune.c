/* dnn_tune.c - what a plan takes, and gives, on memory of its own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dnn_tune.h"
#include "worker.h"

enum { RUNS = 4 }; /* the first warms up */

struct ddp__cudnn_bench {
    struct ddp__cuda_worker worker;
    cudaEvent_t begin, end;
    char *memory, *workspace;
    float number; /* all scalars */
    const void *ptr[DDP__CUDNN_MAX_TENSORS];
};

/* One at a time, or they would measure each other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int open_device(struct ddp__cudnn_bench *b)
{
    int rc;

    if ((rc = ddp__cuda_check(cudaStreamCreateWithFlags(&b->worker.stream,
                                                        cudaStreamNonBlocking),
                              "a stream")) < 0 ||
        (rc = ddp__cuda_check(cudaEventCreate(&b->begin), "an event")) < 0 ||
        (rc = ddp__cuda_check(cudaEventCreate(&b->end), "an event")) < 0 ||
        (rc = ddp__cudnn_check(cudnnCreate(&b->worker.dnn), "starting cuDNN")) <
            0)
        return rc;
    return ddp__cudnn_check(cudnnSetStream(b->worker.dnn, b->worker.stream),
                            "giving cuDNN a stream");
}

/* Places for tensors, one after another; how many bytes that takes. */
static size_t place_tensors(struct ddp__cudnn_bench *b,
                            const struct ddp__cudnn_graph *g)
{
    size_t at = 0;

    for (int i = 0; i < DDP__CUDNN_MAX_TENSORS; i++) {
        if (!g->tensor[i].desc)
            continue;
        if (g->tensor[i].kind == DDP__CUDNN_SCALAR)
            b->ptr[i] = &b->number;
        if (g->tensor[i].kind == DDP__CUDNN_REAL)
            b->ptr[i] = b->memory + at;
        at += (g->tensor[i].size + 255) & ~(size_t)255;
    }
    b->workspace = b->memory + at;
    return at;
}

static int get_memory(struct ddp__cudnn_bench *b,
                      const struct ddp__cudnn_graph *g, size_t workspace)
{
    size_t size = place_tensors(b, g) + workspace + 256;
    int rc = ddp__cuda_check(cudaMalloc((void **)&b->memory, size),
                             "memory to try engines on");

    if (rc < 0) {
        cudaGetLastError(); /* it would come up again later */
        return rc;
    }
    place_tensors(b, g);
    return ddp__cuda_check(
        cudaMemsetAsync(b->memory, 0, size, b->worker.stream),
        "clearing memory");
}

struct ddp__cudnn_bench *ddp__cudnn_bench_new(const struct ddp__cudnn_plan *p,
                                              size_t workspace)
{
    struct ddp__cudnn_bench *b = calloc(1, sizeof(*b));

    if (!b) {
        ddp__fail(DDP_ENOMEM, "out of memory to try engines");
        return NULL;
    }
    pthread_mutex_lock(&lock);
    b->number = 1;
    b->worker.device = p->target->device;
    if (open_device(b) == 0 && get_memory(b, p->graph, workspace) == 0)
        return b;
    ddp__cudnn_bench_free(b);
    return NULL;
}

void ddp__cudnn_bench_free(struct ddp__cudnn_bench *b)
{
    if (!b)
        return;
    if (b->worker.stream)
        cudaStreamSynchronize(b->worker.stream);
    if (b->memory)
        cudaFree(b->memory);
    if (b->begin)
        cudaEventDestroy(b->begin);
    if (b->end)
        cudaEventDestroy(b->end);
    if (b->worker.dnn)
        cudnnDestroy(b->worker.dnn);
    if (b->worker.stream)
        cudaStreamDestroy(b->worker.stream);
    free(b);
    pthread_mutex_unlock(&lock);
}

static int run_once(struct ddp__cudnn_bench *b, struct ddp__cudnn_plan *p,
                    float *ms)
{
    int rc;

    if ((rc = ddp__cuda_check(cudaEventRecord(b->begin, b->worker.stream),
                              "an event")) < 0 ||
        (rc = ddp__cudnn_run(p, &b->worker, b->ptr, b->workspace)) < 0 ||
        (rc = ddp__cuda_check(cudaEventRecord(b->end, b->worker.stream),
                              "an event")) < 0 ||
        (rc = ddp__cuda_check(cudaEventSynchronize(b->end),
                              "trying an engine")) < 0)
        return rc;
    return ddp__cuda_check(cudaEventElapsedTime(ms, b->begin, b->end),
                           "the time of an engine");
}

int ddp__cudnn_bench_run(struct ddp__cudnn_bench *b, struct ddp__cudnn_plan *p,
                         float *ms)
{
    int rc = 0;

    for (int i = 0; i < RUNS && rc == 0; i++) {
        float once = 0;

        rc = run_once(b, p, &once);
        if (i == 1 || (i > 1 && once < *ms))
            *ms = once;
    }
    return rc;
}

static int copy_tensor(struct ddp__cudnn_bench *b, void *to, const void *from,
                       size_t size)
{
    int rc = ddp__cuda_check(
        cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, b->worker.stream),
        "copying a tensor");

    return rc < 0 ? rc
                  : ddp__cuda_check(cudaStreamSynchronize(b->worker.stream),
                                    "copying a tensor");
}

int ddp__cudnn_bench_put(struct ddp__cudnn_bench *b, int tensor,
                         const void *from, size_t size)
{
    return copy_tensor(b, (void *)b->ptr[tensor], from, size);
}

int ddp__cudnn_bench_get(struct ddp__cudnn_bench *b, int tensor, void *to,
                         size_t size)
{
    return copy_tensor(b, to, b->ptr[tensor], size);
}
