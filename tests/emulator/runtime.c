/* runtime.c - devices and memory of libcudart.so
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "emulator.h"

#define MEMORY ((size_t)2 << 30)

enum { MAIN = -1, MANAGED = -2 };

static _Thread_local int current;

static int gpus(void)
{
    const char *text = getenv("EMULATED_GPUS");

    return text ? atoi(text) : 1;
}

int emulator_current(void)
{
    return current;
}

bool emulator_gone(int gpu, const char *call)
{
    static _Atomic int calls;
    static _Atomic bool gone;
    const char *text = getenv("EMULATED_GONE");
    size_t len = strlen(call);

    if (!text || gpu != 1)
        return false;
    if (!strncmp(text, call, len) && text[len] == ' ' &&
        ++calls > atoi(text + len))
        gone = true;
    return gone;
}

static cudaError_t outcome(int gpu, const char *call)
{
    return emulator_gone(gpu, call) ? cudaErrorECCUncorrectable : cudaSuccess;
}

/* ---- memory ------------------------------------------------------------- */

struct block {
    struct block *next;
    char *data;
    size_t size;
    int gpu; /* MANAGED: memory of everybody */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;

static size_t used(int gpu)
{
    size_t sum = 0;

    for (struct block *b = blocks; b; b = b->next)
        sum += b->gpu == gpu ? b->size : 0;
    return sum;
}

/* EMULATED_ROOM: from that allocation on, another program has all memory. */
static bool is_full(void)
{
    static int allocations;
    const char *text = getenv("EMULATED_ROOM");

    return text && ++allocations > atoi(text);
}

static cudaError_t allocate(void **out, size_t size, int gpu)
{
    struct block *b = malloc(sizeof(*b));
    void *data = NULL;

    pthread_mutex_lock(&lock);
    if (!b || (gpu >= 0 && (used(gpu) + size > MEMORY || is_full())) ||
        posix_memalign(&data, 256, size ? size : 1) != 0) {
        pthread_mutex_unlock(&lock);
        free(b);
        return cudaErrorMemoryAllocation;
    }
    memset(data, 0xff, size); /* NaN in every type */
    *b = (struct block){blocks, data, size, gpu};
    blocks = b;
    pthread_mutex_unlock(&lock);
    *out = data;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t size)
{
    if (emulator_gone(current, "malloc"))
        return cudaErrorECCUncorrectable;
    return allocate(out, size, current);
}

cudaError_t cudaMallocManaged(void **out, size_t size, unsigned flags)
{
    (void)flags;
    return allocate(out, size, MANAGED);
}

cudaError_t cudaFree(void *p)
{
    struct block **at, *b;
    int gpu;

    if (!p)
        return outcome(current, "");
    emulator_settle();
    pthread_mutex_lock(&lock);
    for (at = &blocks; *at && (*at)->data != p; at = &(*at)->next)
        ;
    if (!(b = *at))
        emulator_die("cudaFree of what is not there");
    *at = b->next;
    pthread_mutex_unlock(&lock);
    gpu = b->gpu;
    free(b->data);
    free(b);
    return outcome(gpu, "");
}

/* The GPU that has this, or MAIN or MANAGED. */
static int owner(const void *p)
{
    int gpu = MAIN;

    pthread_mutex_lock(&lock);
    for (struct block *b = blocks; b; b = b->next)
        if ((const char *)p >= b->data && (const char *)p < b->data + b->size)
            gpu = b->gpu;
    pthread_mutex_unlock(&lock);
    return gpu;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    pthread_mutex_lock(&lock);
    *all = MEMORY;
    *left = MEMORY - used(current);
    pthread_mutex_unlock(&lock);
    return outcome(current, "");
}

cudaError_t cudaHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    *out = malloc(size ? size : 1);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t size, unsigned flags)
{
    (void)p;
    (void)size;
    (void)flags;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p)
{
    (void)p;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned flags)
{
    (void)flags;
    *out = p;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a,
                                     const void *p)
{
    int gpu = owner(p);

    *a = (struct cudaPointerAttributes){
        .type = gpu < 0 ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice,
        .device = gpu < 0 ? 0 : gpu,
        .devicePointer = (void *)p,
        .hostPointer = gpu < 0 ? (void *)p : NULL};
    return cudaSuccess;
}

/* ---- copies ------------------------------------------------------------- */

struct copy {
    char *to;
    const char *from; /* NULL: the byte `value` */
    size_t size;
    int value;
};

static void do_copy(void *arg)
{
    struct copy *c = arg;

    if (c->from)
        memcpy(c->to, c->from, c->size);
    else
        memset(c->to, c->value, c->size);
}

/* Both ends must be where the program thinks they are. */
static void check_kind(const void *to, const void *from,
                       enum cudaMemcpyKind kind)
{
    bool d = owner(to) >= 0, s = owner(from) >= 0;

    if (owner(to) == MANAGED || owner(from) == MANAGED)
        return;
    if ((kind == cudaMemcpyHostToDevice && (!d || s)) ||
        (kind == cudaMemcpyDeviceToHost && (d || !s)) ||
        (kind == cudaMemcpyDeviceToDevice && (!d || !s)) ||
        (kind == cudaMemcpyHostToHost && (d || s)))
        emulator_die("a copy of kind %d: destination on %s, source on %s",
                     (int)kind, d ? "a GPU" : "the host",
                     s ? "a GPU" : "the host");
}

/* from NULL: none. */
static bool is_lost(const void *to, const void *from)
{
    int gpu = from && owner(from) >= 0 ? owner(from) : owner(to);

    return (owner(to) != gpu && emulator_gone(owner(to), "copy")) ||
           emulator_gone(gpu, "copy");
}

static void queue_copy(struct copy c, cudaStream_t stream)
{
    emulator_queue(stream, do_copy, emulator_copy(&c, sizeof(c)));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    check_kind(to, from, kind);
    if (is_lost(to, from))
        return cudaErrorECCUncorrectable;
    queue_copy((struct copy){to, from, size, 0}, stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size,
                       enum cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(to, from, size, kind, NULL);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int gpu_to, const void *from,
                                int gpu_from, size_t size, cudaStream_t stream)
{
    if ((owner(to) != gpu_to && owner(to) != MANAGED) ||
        (owner(from) != gpu_from && owner(from) != MANAGED))
        emulator_die("a copy from GPU %d to GPU %d is from %d to %d", gpu_from,
                     gpu_to, owner(from), owner(to));
    if (is_lost(to, from))
        return cudaErrorECCUncorrectable;
    queue_copy((struct copy){to, from, size, 0}, stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeer(void *to, int gpu_to, const void *from, int gpu_from,
                           size_t size)
{
    return cudaMemcpyPeerAsync(to, gpu_to, from, gpu_from, size, NULL);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size,
                            cudaStream_t stream)
{
    if (owner(to) == MAIN)
        emulator_die("cudaMemset of main memory");
    if (is_lost(to, NULL))
        return cudaErrorECCUncorrectable;
    queue_copy((struct copy){to, NULL, size, value}, stream);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t size)
{
    return cudaMemsetAsync(to, value, size, NULL);
}

/* ---- devices ------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = gpus();
    return *n > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int gpu)
{
    if (gpu < 0 || gpu >= gpus())
        return cudaErrorInvalidDevice;
    if (emulator_gone(gpu, ""))
        return cudaErrorECCUncorrectable;
    current = gpu;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *gpu)
{
    *gpu = current;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    emulator_settle();
    return outcome(current, "");
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *v)
{
    *v = 99000;
    return cudaSuccess;
}

int emulator_capability(int gpu)
{
    const char *text = getenv("EMULATED_CAPABILITY");

    while (text && gpu-- > 0 && strchr(text, ' '))
        text = strchr(text, ' ') + 1;
    return text ? atoi(text) : 90;
}

void emulator_made_for(int capability)
{
    if (capability != emulator_capability(current))
        emulator_die("GPU %d, of capability %d, runs what was made for %d",
                     current, emulator_capability(current), capability);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int gpu)
{
    memset(p, 0, sizeof(*p));
    snprintf(p->name, sizeof(p->name), "Emulated %d", gpu);
    p->totalGlobalMem = MEMORY;
    p->major = emulator_capability(gpu) / 10;
    p->minor = emulator_capability(gpu) % 10;
    p->multiProcessorCount = 4;
    p->pciBusID = gpu + 1;
    p->concurrentKernels = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr what, int gpu)
{
    *v = what == cudaDevAttrComputeCapabilityMajor
             ? emulator_capability(gpu) / 10
             : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int gpu, int peer)
{
    *can = gpu != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)peer;
    (void)flags;
    return cudaSuccess;
}
