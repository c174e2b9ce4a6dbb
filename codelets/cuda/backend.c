/* backend.c - the table of CUDA workers: cuDNN, cuBLASLt, libddp's kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "bn.h"
#include "bn_kernels.h"
#include "conv.h"
#include "dense.h"
#include "prepare.h"
#include "profile.h"
#include "space.h"
#include "variant.h"
#include "worker.h"

static int cores; /* for what the host makes with many threads */

static int cuda_init(const struct ddp__machine *m)
{
    int rc = ddp__cuda_workers_open();

    cores = m->cores;
    return rc < 0 ? rc : ddp__cuda_profile_open(&ddp__cuda);
}

static void cuda_fini(void)
{
    ddp__cuda_space_close();
    ddp__cuda_profile_close(&ddp__cuda);
    ddp__cuda_workers_close();
    ddp__cuda_plans_close();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char fallback[256]; /* the reason of the first one */

void ddp__cuda_fell_back(const char *why)
{
    pthread_mutex_lock(&lock);
    if (!fallback[0])
        snprintf(fallback, sizeof(fallback), "%.200s%s", why,
                 strlen(why) > 200 ? "..." : "");
    pthread_mutex_unlock(&lock);
}

static const char *cuda_describe(void)
{
    static char text[384];
    size_t v = cudnnGetVersion();
    int cuda = 0;

    cudaRuntimeGetVersion(&cuda);
    pthread_mutex_lock(&lock);
    snprintf(text, sizeof(text), "CUDA %d.%d, cuDNN %zu.%zu.%zu%s%s%s",
             cuda / 1000, cuda % 1000 / 10, v / 10000, v % 10000 / 100, v % 100,
             ddp__cudnn_switches(),
             fallback[0] ? ", some batch norm by libddp's kernels: " : "",
             fallback);
    pthread_mutex_unlock(&lock);
    return text;
}

/* bf16 came with capability 8.0. */
static bool cuda_computes(enum ddp_dtype type)
{
    int device[DDP__CUDA_DEVICES], count = ddp__cuda_devices(device);
    int major = 0;

    if (type != DDP_BF16)
        return type == DDP_F16;
    for (int i = 0; i < count; i++)
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor,
                                   device[i]) != cudaSuccess ||
            major < 8)
            return false;
    return count > 0;
}

static int cuda_pin(void *p, size_t size)
{
    cudaError_t e;

    ddp__cuda_use_device();
    e = cudaHostRegister(p, size, cudaHostRegisterPortable);
    if (e != cudaSuccess)
        cudaGetLastError(); /* it would come up again later */
    return e == cudaSuccess ? 0 : DDP_ENOMEM;
}

static void cuda_unpin(void *p)
{
    if (cudaHostUnregister(p) != cudaSuccess)
        cudaGetLastError(); /* it was not pinned */
}

static void *cuda_map(size_t size)
{
    void *p = NULL;

    if (cudaMallocManaged(&p, size, cudaMemAttachGlobal) == cudaSuccess)
        return p;
    cudaGetLastError();
    return NULL;
}

static void cuda_unmap(void *p)
{
    if (cudaFree(p) != cudaSuccess)
        cudaGetLastError();
}

/* An error of a context comes back from all calls that use it. */
static bool cuda_broken(int device, char *words, size_t size)
{
    size_t left, all;
    int before = 0;
    cudaError_t e;

    cudaGetDevice(&before);
    if ((e = cudaSetDevice(device)) == cudaSuccess)
        e = cudaMemGetInfo(&left, &all);
    cudaSetDevice(before);
    cudaGetLastError(); /* it would come up again later */
    if (e != cudaSuccess)
        snprintf(words, size, "%s", cudaGetErrorString(e));
    return e != cudaSuccess;
}

static int cuda_reason(int error, char *words, size_t size)
{
    snprintf(words, size, "%s", cudaGetErrorString((cudaError_t)error));
    return error == cudaErrorMemoryAllocation ? DDP_ENOMEM : DDP_EDEVICE;
}

static void cuda_warm(const struct ddp__call *const *c, int calls)
{
    ddp__cuda_plans_warm(c, calls, cores);
}

static int cuda_prepare(const struct ddp__call *c, void **plan)
{
    if (ddp__op_is(c->op, DDP__IS_CONV))
        return ddp__cuda_conv_prepare(c, plan);
    if (ddp__op_is(c->op, DDP__IS_DENSE))
        return ddp__cuda_dense_prepare(c, plan);
    if (c->op == DDP__OP_BN_FWD || c->op == DDP__OP_BN_BWD)
        return ddp__cuda_bn_prepare(c, plan);
    return ddp__cuda_kernels_prepare(c);
}

struct ddp__backend ddp__cuda = {
    .name = "cuda",
    .init = cuda_init,
    .fini = cuda_fini,
    .describe = cuda_describe,
    .warm = cuda_warm,
    .prepare = cuda_prepare,
    .release = ddp__cuda_plan_free,
    .ready = ddp__cuda_workers_ready,
    .settle = ddp__cuda_bn_settle,
    .scratch = ddp__cuda_scratch_wanted,
    .taken = ddp__cuda_memory_taken,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .broken = cuda_broken,
    .reason = cuda_reason,
    .space = &ddp__cuda_space,
    .computes = cuda_computes,
    .kernel =
        {
            [DDP__OP_INPUT_U8] = ddp__cuda_input_u8,
            [DDP__OP_INPUT_F32] = ddp__cuda_input_f32,
            [DDP__OP_CONV_FWD] = ddp__cuda_conv_fwd,
            [DDP__OP_CONV_BWD_X] = ddp__cuda_conv_bwd_x,
            [DDP__OP_CONV_BWD_W] = ddp__cuda_conv_bwd_w,
            [DDP__OP_DENSE_FWD] = ddp__cuda_dense_fwd,
            [DDP__OP_DENSE_BWD_X] = ddp__cuda_dense_bwd_x,
            [DDP__OP_DENSE_BWD_W] = ddp__cuda_dense_bwd_w,
            [DDP__OP_BN_FWD] = ddp__cuda_bn_fwd,
            [DDP__OP_BN_EVAL] = ddp__cuda_bn_eval,
            [DDP__OP_BN_EVAL_BWD] = ddp__cuda_bn_eval_bwd,
            [DDP__OP_BN_BWD] = ddp__cuda_bn_bwd,
            [DDP__OP_BN_SUM] = ddp__cuda_bn_sum,
            [DDP__OP_BN_SYNC] = ddp__cuda_bn_sync,
            [DDP__OP_BN_SUM_BWD] = ddp__cuda_bn_sum_bwd,
            [DDP__OP_BN_SYNC_BWD] = ddp__cuda_bn_sync_bwd,
            [DDP__OP_ACT_FWD] = ddp__cuda_act_fwd,
            [DDP__OP_ACT_BWD] = ddp__cuda_act_bwd,
            [DDP__OP_ADD] = ddp__cuda_add,
            [DDP__OP_ACC] = ddp__cuda_acc,
            [DDP__OP_MAX_POOL_FWD] = ddp__cuda_max_pool_fwd,
            [DDP__OP_MAX_POOL_BWD] = ddp__cuda_max_pool_bwd,
            [DDP__OP_MEAN_POOL_FWD] = ddp__cuda_mean_pool_fwd,
            [DDP__OP_MEAN_POOL_BWD] = ddp__cuda_mean_pool_bwd,
            [DDP__OP_CONCAT] = ddp__cuda_concat,
            [DDP__OP_SPLIT] = ddp__cuda_split,
            [DDP__OP_SCALE_FWD] = ddp__cuda_scale_fwd,
            [DDP__OP_SCALE_BWD] = ddp__cuda_scale_bwd,
            [DDP__OP_DROPOUT] = ddp__cuda_dropout,
            [DDP__OP_LOSS] = ddp__cuda_loss,
            [DDP__OP_MERGE] = ddp__cuda_merge,
            [DDP__OP_MERGE_STATS] = ddp__cuda_merge_stats,
            [DDP__OP_SQNORM] = ddp__cuda_sqnorm,
            [DDP__OP_OPTIM] = ddp__cuda_optim,
            [DDP__OP_EMA] = ddp__cuda_ema,
            [DDP__OP_KEEP] = ddp__cuda_keep,
        },
};
