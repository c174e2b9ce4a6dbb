/* tasks.h - operands of tasks, for libddp's kernels; without CUDA's headers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_TASKS_H
#define DDP_CUDA_TASKS_H

#include "gpu/kernels.h"
#include "ops.h"

/* Types of activations. */
#define DDP__CUDA_TYPES (DDP__TYPES(F32) | DDP__TYPES(BF16) | DDP__TYPES(F16))

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
