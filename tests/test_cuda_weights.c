/* test_cuda_weights.c - when a GPU's copies of weights are made, without a GPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * CUDA is played by what is below: memory of the host, work done as it is
 * queued, and every call that orders streams counted.
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

#include "base/error.h"
#include "base/half.h"
#include "cuda/rows.h"
#include "cuda/weights.h"
#include "cuda/worker.h"

enum { LEN = 1000, AT = 64, PART = 100 };

static int converted, recorded, waited, allocated;
static bool fail_record;

cudaError_t cudaMalloc(void **p, size_t size)
{
    allocated++;
    return (*p = malloc(size)) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    *e = calloc(1, 1);
    return flags == cudaEventDisableTiming ? cudaSuccess
                                           : cudaErrorInvalidValue;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    free(e);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    (void)e;
    (void)s;
    recorded++;
    return fail_record ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void)s;
    (void)e;
    waited++;
    return flags ? cudaErrorInvalidValue : cudaSuccess;
}

int ddp__cuda_convert(const float *x, void *y, enum ddp_dtype type, size_t rows,
                      int c, int cy)
{
    converted++;
    for (size_t i = 0; i < rows; i++)
        ((uint16_t *)y)[i] =
            type == DDP_BF16 ? ddp__to_bf16(x[i]) : ddp__to_f16(x[i]);
    return c == 1 && cy == 1 ? 0 : DDP_EINVAL;
}

/* ---- two workers of GPU 0, one of GPU 1 --------------------------------- */

static struct ddp__cuda_worker worker[] = {
    {.device = 0, .stream = (cudaStream_t)&worker[0]},
    {.device = 0, .stream = (cudaStream_t)&worker[1]},
    {.device = 1, .stream = (cudaStream_t)&worker[2]},
};
static int self;

struct ddp__cuda_worker *ddp__cuda_self(void)
{
    return &worker[self];
}

void ddp__cuda_account(size_t size)
{
    (void)size;
}

int ddp__cuda_check(cudaError_t e, const char *what)
{
    return e == cudaSuccess ? 0 : ddp__fail(DDP_EDEVICE, "%s", what);
}

/* ---- a bucket of weights ------------------------------------------------ */

/* The operand that the weights are. */
enum { W = DDP__CONV_FWD_W };

static float w[LEN];
static uint64_t version = 1;

static struct ddp__call part = {
    .buffers = 2,
    .buf = {[W] = {DDP_F32, false, {1, 1, PART}, AT * sizeof(float)}}};
static struct ddp__call all = {.buffers = 2,
                               .buf = {[W] = {DDP_F32, false, {1, 1, LEN}, 0}}};

static struct ddp__task task(const struct ddp__call *c)
{
    return (struct ddp__task){
        .call = c,
        .data = {[W] = (char *)w + c->buf[W].offset},
        .size = {[W] = sizeof(w)},
        .id = {[W] = 77},
        .version = {[W] = version},
    };
}

static void change(void)
{
    for (int i = 0; i < LEN; i++)
        w[i] = (float)((i * 37 + (int)version * 11) % 1009) / 7;
}

/* Whether a worker sees the weights as they are, at the cost of so many
 * conversions and of so many waits for another stream. */
static void sees(int who, enum ddp_dtype type, int conversions, int waits,
                 const char *what)
{
    struct ddp__task t = task(&part);
    const uint16_t *copy;
    int wrong = 0;

    self = who;
    converted = waited = 0;
    copy = ddp__cuda_weights(&t, W, type);
    for (int i = 0; copy && i < PART; i++)
        wrong += copy[i] != (type == DDP_BF16 ? ddp__to_bf16(w[AT + i])
                                              : ddp__to_f16(w[AT + i]));
    ok(copy && !wrong, "%s: a part, converted", what);
    ok(converted == conversions && waited == waits,
       "%s: %d conversions, %d waits", what, converted, waited);
}

/* OPTIM, which writes the copy itself if there is one. */
static bool update(int who)
{
    struct ddp__task t;
    enum ddp_dtype type = DDP_F32;
    uint16_t *copy;

    self = who;
    version++;
    t = task(&all);
    copy = ddp__cuda_copy_begin(&t, W, &type);
    change();
    for (int i = 0; copy && i < LEN; i++)
        copy[i] = ddp__to_bf16(w[i]);
    return copy && type == DDP_BF16 && ddp__cuda_copy_end(&t, W) == 0;
}

int main(void)
{
    struct ddp__task t = task(&part);
    enum ddp_dtype type;
    int before;

    change();
    ok(ddp__cuda_weights(&t, W, DDP_F32) == w + AT, "f32 is no copy");
    ok(!ddp__cuda_copy_begin(&t, W, &type), "nothing to keep before a use");

    sees(0, DDP_BF16, 1, 0, "the first use");
    sees(0, DDP_BF16, 0, 0, "the next one");
    sees(1, DDP_BF16, 0, 1, "another worker of this GPU");
    sees(2, DDP_BF16, 1, 0, "another GPU");
    is_int(recorded, 2, "an event for each conversion");

    before = allocated;
    ok(update(0), "an update writes the copy");
    sees(0, DDP_BF16, 0, 0, "after the update");
    sees(1, DDP_BF16, 0, 1, "another worker after the update");
    sees(2, DDP_BF16, 1, 0, "another GPU after the update");
    is_int(allocated, before, "no memory for it");

    version++; /* by a CPU worker, or the host */
    change();
    sees(1, DDP_BF16, 1, 0, "an update elsewhere");
    sees(0, DDP_BF16, 0, 1, "and the worker that did not convert");

    sees(0, DDP_F16, 1, 0, "the other type");
    sees(0, DDP_F16, 0, 0, "the other type again");

    fail_record = true;
    ok(!update(0), "an update without an event is none");
    fail_record = false;
    sees(0, DDP_BF16, 1, 0, "a copy that may be half written");

    ddp__cuda_weights_forget(0, true);
    ddp__cuda_weights_forget(1, true);
    sees(0, DDP_BF16, 1, 0, "after all was given up");
    ddp__cuda_weights_forget(0, true);
    return done_testing();
}
#endif
