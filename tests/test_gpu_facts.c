/* test_gpu_facts.c - what CUDA and cuDNN report of the first GPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The lines that begin with "# json" are for people without that GPU: cuDNN
 * makes plans for a GPU that is described to it in this way (test_cuda_plans).
 */
#include "config.h"

#include "tap.h"

#ifndef HAVE_CUDA
int main(void)
{
    skip_all("built without CUDA");
}
#else
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "cuda/dnn_plan.h"
#include "cuda/worker.h"

/* cuDNN's description of GPU 0; NULL: it has none. */
static char *describe_device(void)
{
    cudnnBackendAttributeName_t as_json =
        CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION;
    int64_t size = 0, got = 0;
    char *text = NULL;

    if (ddp__cudnn_target_device(0, false, false) == 0 &&
        cudnnBackendGetAttribute(ddp__cudnn_targets[0].prop, as_json,
                                 CUDNN_TYPE_CHAR, 0, &size,
                                 NULL) == CUDNN_STATUS_SUCCESS &&
        size > 0 && (text = calloc(1, (size_t)size + 1)) &&
        cudnnBackendGetAttribute(ddp__cudnn_targets[0].prop, as_json,
                                 CUDNN_TYPE_CHAR, size, &got,
                                 text) == CUDNN_STATUS_SUCCESS)
        return text;
    free(text);
    return NULL;
}

static int number(const json_t *j, const char *name)
{
    return (int)json_integer_value(json_object_get(j, name));
}

static void test_description(const struct cudaDeviceProp *p)
{
    char *text = describe_device();
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;

    if (!text) {
        skip(2, "cuDNN does not describe the GPU");
        return;
    }
    diag("json %s", text);
    ok(j && number(j, "deviceVer") == 100 * p->major + 10 * p->minor &&
           number(j, "multiProcessorCount") == p->multiProcessorCount,
       "cuDNN's description has CUDA's capability and multiprocessors");
    ok(ddp__cudnn_target_json("again", text, false, false) == 0,
       "cuDNN accepts it as that of a GPU which is not there");
    json_decref(j);
    free(text);
}

/* A bandwidth that hints at memory of an unexpected kind, or at a GPU that
 * others use: of a copy within it. */
static void test_memory(void)
{
    size_t size = 256 << 20, left = 0, all = 0;
    cudaEvent_t begin, end;
    void *a = NULL, *b = NULL;
    float ms = 0;
    bool copied;

    cudaMemGetInfo(&left, &all);
    diag("memory: %.1f of %.1f GiB free", (double)left / (1 << 30),
         (double)all / (1 << 30));
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    copied = cudaMalloc(&a, size) == cudaSuccess &&
             cudaMalloc(&b, size) == cudaSuccess &&
             cudaMemset(a, 0, size) == cudaSuccess &&
             cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice, NULL) ==
                 cudaSuccess &&
             cudaEventRecord(begin, NULL) == cudaSuccess &&
             cudaMemcpyAsync(b, a, size, cudaMemcpyDeviceToDevice, NULL) ==
                 cudaSuccess &&
             cudaEventRecord(end, NULL) == cudaSuccess &&
             cudaDeviceSynchronize() == cudaSuccess &&
             cudaEventElapsedTime(&ms, begin, end) == cudaSuccess;
    ok(copied, "256 MiB are copied within the GPU: %.0f GB/s read and written",
       ms > 0 ? 2e-6 * (double)size / (double)ms : 0);
    cudaFree(a);
    cudaFree(b);
}

int main(void)
{
    struct cudaDeviceProp p;
    int n = 0, driver = 0, runtime = 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess || n < 1)
        skip_all("no GPU");
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    ok(cudaGetDeviceProperties(&p, 0) == cudaSuccess, "%d GPUs, the first: %s",
       n, p.name);
    diag("capability %d.%d, %d multiprocessors, L2 %d KiB, PCI %04x:%02x:%02x",
         p.major, p.minor, p.multiProcessorCount, p.l2CacheSize / 1024,
         p.pciDomainID, p.pciBusID, p.pciDeviceID);
    diag("driver of CUDA %d, run time %d, cuDNN %zu, cuBLASLt %zu", driver,
         runtime, cudnnGetVersion(), cublasLtGetVersion());
    test_description(&p);
    test_memory();
    ddp__cudnn_targets_free();
    return done_testing();
}
#endif
