/* space.c - the memory of GPUs, for the thread that carries messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On streams of its own, so that it waits for nothing of the workers, which
 * have finished what they left in this memory.
 */
#include "config.h"

#include "base/error.h"
#include "launch.h"
#include "space.h"
#include "tasks.h"
#include "worker.h"

/* Sums, and copies in each direction, for which GPUs have an engine each. */
enum { SUMS, OUT, IN, STREAMS };

static cudaStream_t streams[DDP__CUDA_DEVICES][STREAMS], *stream;

static int enter(int device)
{
    int rc = ddp__cuda_check(cudaSetDevice(device), "choosing a GPU");

    stream = streams[device];
    for (int i = 0; i < STREAMS && rc == 0; i++)
        if (!stream[i])
            rc = ddp__cuda_check(
                cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking),
                "making a stream");
    return rc;
}

static int copy(void *to, const void *from, size_t size)
{
    return ddp__cuda_check(
        cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream[SUMS]),
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

    return ddp__cuda_launched(ddp__k_add(&p, stream[SUMS]), "add");
}

static int wait(void)
{
    return ddp__cuda_check(cudaStreamSynchronize(stream[SUMS]),
                           "waiting for a sum");
}

static int carry(void *to, const void *from, size_t size, bool out)
{
    return ddp__cuda_check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault,
                                           stream[out ? OUT : IN]),
                           "copying a part of a sum");
}

static int mark(bool out, void **ticket)
{
    cudaEvent_t event;
    int rc = ddp__cuda_check(
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
        "making an event");

    if (rc < 0)
        return rc;
    *ticket = event;
    return ddp__cuda_check(cudaEventRecord(event, stream[out ? OUT : IN]),
                           "recording an event");
}

static int passed(void **ticket)
{
    cudaEvent_t event = *ticket;
    cudaError_t e = cudaEventQuery(event);
    int rc;

    if (e == cudaErrorNotReady)
        return 0;
    *ticket = NULL;
    cudaEventDestroy(event);
    rc = ddp__cuda_check(e, "copying a part of a sum");
    return rc < 0 ? rc : 1;
}

const struct ddp__space ddp__cuda_space = {enter, copy, add,   wait,
                                           carry, mark, passed};

void ddp__cuda_space_close(void)
{
    for (int i = 0; i < DDP__CUDA_DEVICES; i++)
        for (int k = 0; k < STREAMS; k++) {
            if (streams[i][k])
                cudaStreamDestroy(streams[i][k]);
            streams[i][k] = NULL;
        }
}
