/* kernel.h - makes kernels of the bodies in a header: for the .cu files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_KERNEL_H
#define DDP_CUDA_KERNEL_H

#include "gpu/arith.h"

/* Enough threads for any GPU; each takes as many items as it must. */
enum { DDP__MAX_BLOCKS = 8192 };

static inline unsigned ddp__item_blocks(size_t items)
{
    size_t blocks = (items + DDP__THREADS - 1) / DDP__THREADS;

    return blocks < DDP__MAX_BLOCKS ? (unsigned)blocks : DDP__MAX_BLOCKS;
}

/* The status is that of this launch alone.  cudaGetLastError() would also tell
 * of calls before it: StarPU asks a thread's events whether they are over, and
 * the "not ready" it mostly gets remains that thread's last error. */
static inline int ddp__start(const void *kernel, unsigned blocks, const void *p,
                             void *stream)
{
    void *args[] = {(void *)p};

    return cudaLaunchKernel(kernel, dim3(blocks), dim3(DDP__THREADS), args, 0,
                            (cudaStream_t)stream);
}

/* Start `kernel` of a type of activations; a launch of nothing is an error, so
 * there is none. */
#define DDP__START_TYPED(kernel, blocks, p, stream)                            \
    switch ((p)->type) {                                                       \
    case DDP_F32:                                                              \
        return ddp__start((const void *)kernel<DDP_F32>, blocks, p, stream);   \
    case DDP_BF16:                                                             \
        return ddp__start((const void *)kernel<DDP_BF16>, blocks, p, stream);  \
    case DDP_F16:                                                              \
        return ddp__start((const void *)kernel<DDP_F16>, blocks, p, stream);   \
    default:                                                                   \
        return cudaErrorInvalidValue;                                          \
    }

#define DDP__ITEM_KERNEL(name, params)                                         \
    template <enum ddp_dtype type>                                             \
    static __global__ void __launch_bounds__(DDP__THREADS)                     \
        name##_kernel(const __grid_constant__ struct ddp__k_##params p)        \
    {                                                                          \
        size_t threads = (size_t)gridDim.x * DDP__THREADS;                     \
        size_t first = (size_t)blockIdx.x * DDP__THREADS + threadIdx.x;        \
                                                                               \
        for (size_t i = first; i < p.items; i += threads)                      \
            ddp__k_##name##_item(&p, i, type);                                 \
    }                                                                          \
                                                                               \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream)           \
    {                                                                          \
        if (p->items == 0)                                                     \
            return cudaSuccess;                                                \
        DDP__START_TYPED(name##_kernel, ddp__item_blocks(p->items), p, stream) \
    }

#define DDP__BLOCK_KERNEL(name, params)                                        \
    template <enum ddp_dtype type>                                             \
    static __global__ void __launch_bounds__(DDP__THREADS)                     \
        name##_kernel(const __grid_constant__ struct ddp__k_##params p)        \
    {                                                                          \
        __shared__ struct ddp__k_##name##_shared shared;                       \
                                                                               \
        ddp__k_##name##_block(&p, &shared, blockIdx.x, type);                  \
    }                                                                          \
                                                                               \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream)           \
    {                                                                          \
        if (p->blocks == 0)                                                    \
            return cudaSuccess;                                                \
        DDP__START_TYPED(name##_kernel, p->blocks, p, stream)                  \
    }

#define DDP__PLAIN_KERNEL(name, params)                                        \
    static __global__ void __launch_bounds__(DDP__THREADS)                     \
        name##_kernel(const __grid_constant__ struct ddp__k_##params p)        \
    {                                                                          \
        __shared__ struct ddp__k_##name##_shared shared;                       \
                                                                               \
        ddp__k_##name##_block(&p, &shared, blockIdx.x);                        \
    }                                                                          \
                                                                               \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream)           \
    {                                                                          \
        if (p->blocks == 0)                                                    \
            return cudaSuccess;                                                \
        return ddp__start((const void *)name##_kernel, p->blocks, p, stream);  \
    }

#endif
