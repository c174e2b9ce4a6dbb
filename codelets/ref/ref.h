/* ref.h - the ref device: every op in plain C, as its definition
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What these files compute is what an op means; other devices are tested
 * against them.  Sums are made in double and one element after another, so
 * that a result owes nothing to the order of a clever loop.  Letters and the
 * order of buffers are those of ops_table.h.
 */
#ifndef DDP_REF_H
#define DDP_REF_H

#include "base/half.h"
#include "ops.h"

/* Element i of an activation. */
static inline float ddp__ref_get(enum ddp_dtype type, const void *data,
                                 size_t i)
{
    if (type == DDP_BF16)
        return ddp__from_bf16(((const uint16_t *)data)[i]);
    if (type == DDP_F16)
        return ddp__from_f16(((const uint16_t *)data)[i]);
    return ((const float *)data)[i];
}

static inline void ddp__ref_set(enum ddp_dtype type, void *data, size_t i,
                                double value)
{
    if (type == DDP_BF16)
        ((uint16_t *)data)[i] = ddp__to_bf16((float)value);
    else if (type == DDP_F16)
        ((uint16_t *)data)[i] = ddp__to_f16((float)value);
    else
        ((float *)data)[i] = (float)value;
}

/* An activation buffer of a task, with what is needed to walk over it. */
struct ddp__ref_buf {
    enum ddp_dtype type;
    void *data;
    int h, w, c;
};

static inline struct ddp__ref_buf ddp__ref_buf(const struct ddp__task *t, int i)
{
    const struct ddp__view *v = &t->call->buf[i];

    return (struct ddp__ref_buf){v->type, t->data[i], v->shape.h, v->shape.w,
                                 v->shape.c};
}

/* Where (n, y, x, c) is. */
static inline size_t ddp__ref_at(const struct ddp__ref_buf *b, int n, int y,
                                 int x, int c)
{
    return (((size_t)n * (size_t)b->h + (size_t)y) * (size_t)b->w + (size_t)x) *
               (size_t)b->c +
           (size_t)c;
}

static inline float ddp__ref_read(const struct ddp__ref_buf *b, size_t i)
{
    return ddp__ref_get(b->type, b->data, i);
}

static inline void ddp__ref_write(const struct ddp__ref_buf *b, size_t i,
                                  double value)
{
    ddp__ref_set(b->type, b->data, i, value);
}

/* An element of g: written, or added to. */
static inline void ddp__ref_sum(const struct ddp__task *t, float *g,
                                double value)
{
    *g = (float)(t->accumulate ? (double)*g + value : value);
}

/* Loops make so many sums at the same time, as the next term of one has to wait
 * for the last: each has its terms in the same order as if it were alone. */
enum { DDP__REF_SUMS = 16 };

/* How many of so many sums that are left. */
static inline size_t ddp__ref_part(size_t rest)
{
    return rest < DDP__REF_SUMS ? rest : DDP__REF_SUMS;
}

/* Elements of one sample of buffer i. */
static inline size_t ddp__ref_sample_len(const struct ddp__task *t, int i)
{
    struct ddp_shape s = t->call->buf[i].shape;

    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

#endif
