/* tasks.h - from tasks to libddp's kernels, without CUDA's headers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each op's function fills in the arguments of its kernels and launches them.
 */
#ifndef DDP_TASKS_H
#define DDP_TASKS_H

#include "gpu/kernels.h"
#include "ops.h"

/* Of all ops, ours and those by cuDNN and cuBLASLt. */
#define X(id, name, traits) int ddp__cuda_##name(const struct ddp__task *t);
DDP__OPS(X)
#undef X

/* Types of activations. */
#define DDP__CUDA_TYPES (DDP__TYPES(F32) | DDP__TYPES(BF16) | DDP__TYPES(F16))

/* Whether our kernels can run a call, DDP_ENODEV if not, and how much scratch
 * they want for it. */
int ddp__cuda_kernels_prepare(const struct ddp__call *c);

/* Batch norm by libddp's kernels. */
int ddp__cuda_bn_kernels_fwd(const struct ddp__task *t);
int ddp__cuda_bn_kernels_eval(const struct ddp__task *t);
int ddp__cuda_bn_kernels_bwd(const struct ddp__task *t);

/* ---- parts for other ops ------------------------------------------------ */

/* g[row, i] (+)= x[row, i], i < c, of rows of cx values: a gradient into the
 * bucket, less the channels that were padded. */
int ddp__cuda_accumulate(const void *x, enum ddp_dtype type, float *g,
                         size_t rows, int c, int cx, bool add);

/* y[row, i] = x[row, i], i < c, and 0 up to cy: weights in the type of
 * activations, with channels padded. */
int ddp__cuda_convert(const float *x, void *y, enum ddp_dtype type, size_t rows,
                      int c, int cy);

/* g[i] (+)= the sum of x over rows of c values: the gradient of a bias.  Takes
 * `scratch` of ddp__columns_scratch(1, c) bytes. */
int ddp__cuda_sum_rows(const void *x, enum ddp_dtype type, float *g,
                       size_t rows, int c, bool add, void *scratch);

/* ---- what the functions share ------------------------------------------- */

/* Where kernels go, and memory for what passes between kernels of a task. */
struct ddp__cuda_place {
    void *stream;
    void *scratch;
};

/* Those of the calling worker.  launch.c. */
int ddp__cuda_place(struct ddp__cuda_place *place);
/* 0, or ddp__fail() if a launch returned an error.  launch.c. */
int ddp__cuda_launched(int error, const char *name);
/* Within prepare: scratch memory that a call needs (launch.c). */
void ddp__cuda_needs(size_t scratch);
/* The copy in another type that is kept of all of buffer i, which OPTIM shall
 * write with it; NULL: none.  What is queued by then is the new version, says
 * the second.  weights.c. */
void *ddp__cuda_copy_begin(const struct ddp__task *t, int i,
                           enum ddp_dtype *type);
int ddp__cuda_copy_end(const struct ddp__task *t, int i);

#define DDP__LAUNCH(place, name, p)                                            \
    ddp__cuda_launched(ddp__k_##name((p), (place)->stream), #name)

/* The cut of rows into blocks, and bytes for two f32 of each channel of each
 * chunk, for any rows. */
struct ddp__columns ddp__columns(size_t segments, size_t rows, int c);
unsigned ddp__columns_blocks(const struct ddp__columns *k);
unsigned ddp__columns_finish_blocks(const struct ddp__columns *k);
size_t ddp__columns_scratch(size_t segments, int c);

/* Whether p is a multiple of 16. */
static inline bool ddp__aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

static inline size_t ddp__groups(size_t len)
{
    return (len + DDP__WIDTH - 1) / DDP__WIDTH;
}

/* Samples times pixels of buffer i. */
static inline size_t ddp__pixels(const struct ddp__task *t, int i)
{
    const struct ddp_shape *s = &t->call->buf[i].shape;

    return (size_t)t->n * (size_t)s->h * (size_t)s->w;
}

/* Whether channels come in whole groups. */
static inline bool ddp__whole(int c)
{
    return c % DDP__WIDTH == 0;
}

static inline bool ddp__all_aligned(const struct ddp__task *t, const int *buf,
                                    int count)
{
    for (int i = 0; i < count; i++)
        if (!ddp__aligned(t->data[buf[i]])) /* so is what is absent */
            return false;
    return true;
}
/* Whether all these operands lie well. */
#define DDP__ALIGNED(t, ...)                                                   \
    ddp__all_aligned(t, (const int[]){__VA_ARGS__},                            \
                     (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))

#endif
