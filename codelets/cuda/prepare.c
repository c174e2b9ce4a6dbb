/* prepare.c - what libddp's kernels can run, and the scratch they want
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "tasks.h"

/* The buffers that are activations, all of one type; -1 ends them. */
static const int *activations(const struct ddp__call *c)
{
    static const int none[] = {-1}, y[] = {1, -1}, two[] = {0, 1, -1};
    static const int three[] = {0, 1, 2, -1}, ends[] = {0, 2, -1};
    static const int scale[] = {0, 1, 2, 3, 4, -1};
    static const int fwd[] = {0, 2, 4, -1}, eval[] = {0, 2, 3, -1};
    static const int bwd[] = {0, 1, 2, 6, 7, -1},
                     bwd_alone[] = {0, 1, 2, 6, -1},
                     bwd_mask[] = {0, 2, 6, 7, -1};

    switch (c->op) {
    case DDP__OP_INPUT_U8:
    case DDP__OP_INPUT_F32:
        return y;
    case DDP__OP_ACT_FWD:
    case DDP__OP_ACC:
    case DDP__OP_MAX_POOL_FWD:
    case DDP__OP_MEAN_POOL_FWD:
    case DDP__OP_MEAN_POOL_BWD:
    case DDP__OP_CONCAT:
    case DDP__OP_SPLIT:
        return two;
    case DDP__OP_ACT_BWD:
    case DDP__OP_ADD:
    case DDP__OP_SCALE_FWD:
        return three;
    case DDP__OP_MAX_POOL_BWD:
    case DDP__OP_DROPOUT:
        return ends;
    case DDP__OP_SCALE_BWD:
        return scale;
    case DDP__OP_BN_FWD:
        return c->bn.residual ? fwd : ends;
    case DDP__OP_BN_EVAL:
        return c->bn.residual ? eval : ends;
    case DDP__OP_BN_BWD:
        return c->bn.mask ? bwd_mask : c->bn.residual ? bwd : bwd_alone;
    default:
        return none;
    }
}

static bool is_activation(enum ddp_dtype type)
{
    return type == DDP_F32 || type == DDP_BF16 || type == DDP_F16;
}

static int check_types(const struct ddp__call *c)
{
    const int *buf = activations(c);

    for (int i = 0; buf[i] >= 0; i++)
        if (!is_activation(c->buf[buf[i]].type) ||
            c->buf[buf[i]].type != c->buf[buf[0]].type)
            return ddp__fail(DDP_ENODEV, "activations of different types");
    if (c->op == DDP__OP_LOSS &&
        (!is_activation(c->buf[0].type) ||
         (c->buffers > 4 && !is_activation(c->buf[4].type))))
        return ddp__fail(DDP_ENODEV, "a loss of other than activations");
    return 0;
}

/* Items are counted in 32 bits. */
static int check_sizes(const struct ddp__call *c)
{
    for (int i = 0; i < c->buffers; i++) {
        const struct ddp_shape *s = &c->buf[i].shape;
        size_t samples = c->buf[i].per_sample ? (size_t)c->cap : 1;
        size_t pixels = samples * (size_t)s->h * (size_t)s->w;

        if (pixels * ddp__groups((size_t)s->c) > INT32_MAX)
            return ddp__fail(DDP_ENODEV, "a buffer of %zu pixels", pixels);
    }
    return 0;
}

static size_t scratch_of(const struct ddp__call *c)
{
    size_t cap = (size_t)c->cap;
    int channels = c->buf[0].shape.c;

    switch (c->op) {
    case DDP__OP_BN_FWD:
    case DDP__OP_BN_BWD:
        return ddp__columns_scratch(1, channels) +
               2 * (size_t)channels * sizeof(float);
    case DDP__OP_MEAN_POOL_FWD:
    case DDP__OP_SCALE_BWD:
        return ddp__columns_scratch(cap, channels);
    case DDP__OP_LOSS:
        return cap * (sizeof(double) + sizeof(int));
    case DDP__OP_SQNORM: /* a block may be shared by two launches */
        return ((size_t)channels / DDP__TILE + 1 + 2 * (size_t)c->optim.spans) *
               sizeof(struct ddp__k_norms);
    default:
        return 0;
    }
}

int ddp__cuda_kernels_prepare(const struct ddp__call *c)
{
    int rc;

    if (c->op == DDP__OP_LOSS && c->loss.kind == DDP_OWN_LOSS)
        return ddp__fail(DDP_ENODEV, "a loss of the program's own runs on CPU "
                                     "workers");
    if ((rc = check_types(c)) < 0 || (rc = check_sizes(c)) < 0)
        return rc;
    ddp__cuda_needs(scratch_of(c));
    return 0;
}
