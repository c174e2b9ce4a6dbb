/* space.c - the memory of GPUs, for the thread that carries messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On a stream of its own, so that it waits for nothing of the workers, which
 * have finished what they left in this memory.
 */
#include "config.h"

#include "base/error.h"
#include "launch.h"
#include "space.h"
#include "tasks.h"
#include "worker.h"

static cudaStream_t stream[DDP__CUDA_DEVICES];
static int current;

static int enter(int device)
{
    int rc = ddp__cuda_check(cudaSetDevice(device), "choosing a GPU");

    current = device;
    if (rc == 0 && !stream[device])
        rc = ddp__cuda_check(
            cudaStreamCreateWithFlags(&stream[device], cudaStreamNonBlocking),
            "making a stream");
    return rc;
}

static int copy(void *to, const void *from, size_t size)
{
    return ddp__cuda_check(cudaMemcpyAsync(to, from, size,
                                           cudaMemcpyDeviceToDevice,
                                           stream[current]),
                           "copying a sum");
}

static int add(float *to, const float *from, size_t n)
{
    const struct ddp__k_flat p = {.items = (unsigned)ddp__groups(n),
                                  .type = DDP_F32,
                                  .wide =
                                      ddp__aligned(to) && ddp__aligned(from),
                                  .act = DDP_IDENTITY,
                                  .a = to,
                                  .b = from,
                                  .y = to,
                                  .len = n};

    return ddp__cuda_launched(ddp__k_add(&p, stream[current]), "add");
}

static int wait(void)
{
    return ddp__cuda_check(cudaStreamSynchronize(stream[current]),
                           "waiting for a sum");
}

const struct ddp__space ddp__cuda_space = {enter, copy, add, wait};

void ddp__cuda_space_close(void)
{
    for (int i = 0; i < DDP__CUDA_DEVICES; i++) {
        if (stream[i])
            cudaStreamDestroy(stream[i]);
        stream[i] = NULL;
    }
}
