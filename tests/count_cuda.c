/* count_cuda.c - counts what is allocated on GPUs, and what is pinned
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For LD_PRELOAD; a test asks for count_cuda_calls().
 */
#include "config.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int calls;

int count_cuda_calls(void);
int count_cuda_calls(void)
{
    return calls;
}

/* A status is an int to the machine. */
#define COUNT(name, args, ...)                                                 \
    int name args;                                                             \
    int name args                                                              \
    {                                                                          \
        int(*next) args;                                                       \
                                                                               \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                             \
        calls++;                                                               \
        return next ? next(__VA_ARGS__) : 999;                                 \
    }

COUNT(cudaMalloc, (void **p, size_t n), p, n)
COUNT(cudaFree, (void *p), p)
COUNT(cudaMallocAsync, (void **p, size_t n, void *s), p, n, s)
COUNT(cudaFreeAsync, (void *p, void *s), p, s)
COUNT(cudaMallocHost, (void **p, size_t n), p, n)
COUNT(cudaHostAlloc, (void **p, size_t n, unsigned f), p, n, f)
COUNT(cudaFreeHost, (void *p), p)
COUNT(cudaHostRegister, (void *p, size_t n, unsigned f), p, n, f)
COUNT(cudaHostUnregister, (void *p), p)
