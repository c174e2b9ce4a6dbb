/* launch.c - kernels of our own: a launch runs the body that a CPU can run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "emulator.h"
#include "gpu/after.h"
#include "gpu/columns.h"
#include "gpu/elementwise.h"
#include "gpu/losses.h"
#include "gpu/norm_step.h"
#include "gpu/pooling.h"
#include "gpu/updates.h"

/* ---- bodies ------------------------------------------------------------- */

#define ITEM(name, params)                                                     \
    static void run_##name(void *arg)                                          \
    {                                                                          \
        const struct ddp__k_##params *p = arg;                                 \
                                                                               \
        for (size_t i = 0; i < p->items; i++)                                  \
            ddp__k_##name##_item(p, i, p->type);                               \
    }
#define BLOCKS(name, params, args)                                             \
    static void run_##name(void *arg)                                          \
    {                                                                          \
        const struct ddp__k_##params *p = arg;                                 \
        struct ddp__k_##name##_shared shared;                                  \
                                                                               \
        memset(&shared, 0xff, sizeof(shared));                                 \
        for (unsigned i = 0; i < p->blocks; i++)                               \
            ddp__k_##name##_block args;                                        \
    }
#define BLOCK(name, params) BLOCKS(name, params, (p, &shared, i, p->type))
#define PLAIN(name, params) BLOCKS(name, params, (p, &shared, i))
DDP__AFTER_ITEMS(ITEM)
DDP__AFTER_PLAIN(PLAIN)
DDP__ELEMENTWISE_ITEMS(ITEM)
DDP__POOLING_ITEMS(ITEM)
DDP__COLUMNS_BLOCKS(BLOCK)
DDP__NORM_BLOCKS(BLOCK)
DDP__NORM_PLAIN(PLAIN)
DDP__LOSSES_BLOCKS(BLOCK)
DDP__LOSSES_PLAIN(PLAIN)
DDP__UPDATES_PLAIN(PLAIN)

static const struct body {
    const char *name;
    size_t size; /* of its arguments */
    void (*run)(void *arg);
} bodies[] = {
#define BODY(name, params)                                                     \
    {#name "_kernel", sizeof(struct ddp__k_##params), run_##name},
    DDP__AFTER_ITEMS(BODY) DDP__AFTER_PLAIN(BODY) DDP__ELEMENTWISE_ITEMS(BODY)
        DDP__POOLING_ITEMS(BODY) DDP__COLUMNS_BLOCKS(BODY)
            DDP__NORM_BLOCKS(BODY) DDP__NORM_PLAIN(BODY)
                DDP__LOSSES_BLOCKS(BODY) DDP__LOSSES_PLAIN(BODY)
                    DDP__UPDATES_PLAIN(BODY)
#undef BODY
};
enum { BODIES = sizeof(bodies) / sizeof(bodies[0]) };

/* ---- what nvcc's code registers ----------------------------------------- */

static struct kernel {
    const void *function; /* as the host knows it */
    const struct body *body;
} kernels[4 * BODIES];
static int count;

/* C++ writes a name after its length. */
static const struct body *find(const char *mangled)
{
    char text[80];

    for (int i = 0; i < BODIES; i++) {
        snprintf(text, sizeof(text), "%zu%s", strlen(bodies[i].name),
                 bodies[i].name);
        if (strstr(mangled, text))
            return &bodies[i];
    }
    return NULL;
}

void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;

    (void)binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

/* Libraries of CUDA register theirs as well: those are not known here. */
void __cudaRegisterFunction(void **handle, const char *function, char *name,
                            const char *mangled, int threads, void *tid,
                            void *bid, void *block, void *grid, int *warp);
void __cudaRegisterFunction(void **handle, const char *function, char *name,
                            const char *mangled, int threads, void *tid,
                            void *bid, void *block, void *grid, int *warp)
{
    const struct body *b = find(mangled);

    (void)handle;
    (void)name;
    (void)threads;
    (void)tid;
    (void)bid;
    (void)block;
    (void)grid;
    (void)warp;
    if (b && count < 4 * BODIES)
        kernels[count++] = (struct kernel){function, b};
}

/* EMULATED_LOST: GPU 1 fails after so many launches. */
static bool is_lost(void)
{
    static _Atomic int launches;
    const char *text = getenv("EMULATED_LOST");
    int gpu = 0;

    cudaGetDevice(&gpu);
    return text && gpu == 1 && ++launches > atoi(text);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                             void **args, size_t shared, cudaStream_t stream)
{
    (void)grid;
    (void)block;
    (void)shared;
    if (is_lost() || emulator_gone(emulator_current(), "launch"))
        return cudaErrorECCUncorrectable;
    emulator_launch();
    for (int i = 0; i < count; i++)
        if (kernels[i].function == function) {
            const struct body *b = kernels[i].body;

            emulator_queue(stream, b->run, emulator_copy(args[0], b->size));
            return cudaSuccess;
        }
    emulator_die("a kernel that is not known");
}
