/* on_gpu.c - kernels of CUDA for tests that have their tensors in main memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cuda/weights.h"
#include "cuda/worker.h"
#include "on_gpu.h"

static struct ddp__cuda_worker worker;

enum { GUARD = 256, PATTERN = 0xa5 };

int on_gpu_enter(void)
{
    int n = 0, rc;

    if (cudaGetDeviceCount(&n) != cudaSuccess || n < 1)
        return 0;
    return (rc = ddp__cuda_enter(&worker, 0)) < 0 ? rc : 1;
}

void on_gpu_leave(void)
{
    ddp__cuda_weights_forget(0, true);
    ddp__cuda_leave();
}

/* A copy on the device, with a guard behind it that nobody may touch. */
static int push(struct ddp__task *t, int i, size_t size, void **device)
{
    int rc = ddp__cuda_check(cudaMalloc(device, size + GUARD), "test memory");

    if (rc == 0)
        rc = ddp__cuda_check(
            cudaMemcpy(*device, t->data[i], size, cudaMemcpyHostToDevice),
            "copying to the GPU");
    if (rc == 0)
        rc = ddp__cuda_check(cudaMemset((char *)*device + size, PATTERN, GUARD),
                             "marking what is behind");
    t->data[i] = *device;
    return rc;
}

static int pull(void *host, const void *device, size_t size, int i)
{
    static unsigned char guard[GUARD];
    int rc = ddp__cuda_check(
        cudaMemcpy(host, device, size, cudaMemcpyDeviceToHost), "copying back");

    if (rc == 0)
        rc = ddp__cuda_check(cudaMemcpy(guard, (const char *)device + size,
                                        GUARD, cudaMemcpyDeviceToHost),
                             "copying what is behind");
    for (int k = 0; rc == 0 && k < GUARD; k++)
        if (guard[k] != PATTERN)
            rc = ddp__fail(DDP_EDEVICE, "written %d bytes behind buffer %d", k,
                           i);
    return rc;
}

/* Copies and marks are on the GPU: the worker's stream does not wait for the
 * stream they were made on.  And what a worker's thread may have from before,
 * an error that nobody asked for, is none of the kernel's. */
static int settle(void)
{
    int rc = ddp__cuda_check(cudaDeviceSynchronize(), "copying to the GPU");

    if (rc == 0 && cudaSetDevice(-1) == cudaSuccess)
        rc = ddp__fail(DDP_EDEVICE, "there is a GPU -1");
    return rc;
}

int on_gpu_run(const struct ddp__backend *b, struct ddp__task *t,
               const size_t *size)
{
    void *host[DDP_MAX_BUFFERS], *device[DDP_MAX_BUFFERS] = {NULL};
    int rc = ddp__cuda_enter_ready();

    for (int i = 0; i < t->call->buffers; i++)
        host[i] = t->data[i];
    for (int i = 0; rc == 0 && i < t->call->buffers; i++)
        rc = host[i] ? push(t, i, size[i], &device[i]) : 0;
    if (rc == 0)
        rc = settle();
    if (rc == 0)
        rc = b->kernel[t->call->op](t);
    if (rc == 0)
        rc = b->settle();
    if (rc == 0)
        rc = ddp__cuda_check(cudaStreamSynchronize(worker.stream), "running");
    for (int i = 0; rc == 0 && i < t->call->buffers; i++)
        rc = host[i] ? pull(host[i], device[i], size[i], i) : 0;
    for (int i = 0; i < t->call->buffers; i++)
        cudaFree(device[i]);
    return rc;
}
