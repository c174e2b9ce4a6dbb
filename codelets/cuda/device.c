/* device.c - NVIDIA's GPUs as a device
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cuda/gpu.h"

static void cuda_configure(struct starpu_conf *conf, const struct ddp__gpus *g)
{
    conf->ncuda = g->count;
    if (g->count == g->seen)
        return;
    conf->use_explicit_workers_cuda_gpuid = 1;
    for (int i = 0; i < g->count; i++)
        conf->workers_cuda_gpuid[i] = (unsigned)g->id[i];
}

static void cuda_attach(struct starpu_codelet *cl, starpu_cpu_func_t run)
{
    cl->cuda_funcs[0] = run;
    cl->cuda_flags[0] = STARPU_CUDA_ASYNC;
}

static void *cuda_stream(void)
{
#ifdef STARPU_USE_CUDA
    return starpu_cuda_get_local_stream();
#else
    return NULL; /* compiled only: there are no such workers */
#endif
}

/* Tensor cores take channels in groups of 8. */
const struct ddp__device ddp__device_cuda = {
    .name = "CUDA",
    .kind = DDP_CUDA,
    .workers = STARPU_CUDA_WORKER,
    .where = STARPU_CUDA,
    .memory = STARPU_CUDA_RAM,
    .queues = true,
    .speed = {.begin_us = 5, .flops = 300e12, .bytes = 3e12},
    .channels = 8,
    .backends = ddp__cuda_backends,
    .count = "STARPU_NCUDA",
    .find = ddp__cuda_find,
    .configure = cuda_configure,
    .attach = cuda_attach,
    .stream = cuda_stream,
};
