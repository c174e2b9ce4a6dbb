/* prepare.c - what libddp's kernels can run, and the scratch they need
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "launch.h"
#include "prepare.h"
#include "rows.h"
#include "tasks.h"

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

static size_t bn_scratch(int channels)
{
    return ddp__columns_scratch(1, channels) +
           2 * (size_t)channels * sizeof(float);
}

/* A block may be shared by two launches. */
static size_t norm_scratch(const struct ddp__call *c)
{
    size_t len = (size_t)c->buf[DDP__SQNORM_G].shape.c;

    return (len / DDP__TILE + 1 + 2 * (size_t)c->optim.spans) *
           sizeof(struct ddp__k_norms);
}

/* Of the launch that has most. */
static size_t trust_scratch(const struct ddp__call *c)
{
    size_t len = (size_t)c->buf[DDP__OPTIM_G].shape.c;

    if (!ddp__optimizer_uses(&c->optim.o, DDP__LAYERWISE))
        return 0;
    return (len / DDP__TILE + 1 + DDP__SPANS) * sizeof(struct ddp__k_squares) +
           DDP__SPANS * sizeof(float);
}

/* A factor of each output that is clipped; AdamP: also products, and a factor
 * of each span. */
static size_t unit_scratch(const struct ddp__call *c)
{
    size_t units = 0, spans = 0, size = sizeof(float);

    if (ddp__optimizer_uses(&c->optim.o, DDP__PROJECTS)) {
        spans = DDP__SPANS;
        size += sizeof(struct ddp__k_products);
    }

    for (int i = 0; i < c->optim.spans; i++)
        if (c->optim.span[i].unit)
            units += c->optim.span[i].len / c->optim.span[i].unit;
    return units * size + spans * sizeof(float);
}

static size_t scratch_of(const struct ddp__call *c)
{
    size_t cap = (size_t)c->cap;

    switch (c->op) {
    case DDP__OP_BN_FWD:
    case DDP__OP_BN_SUM:
        return bn_scratch(c->buf[DDP__BN_FWD_X].shape.c);
    case DDP__OP_BN_BWD:
    case DDP__OP_BN_SUM_BWD:
        return bn_scratch(c->buf[DDP__BN_BWD_X].shape.c);
    case DDP__OP_MEAN_POOL_FWD:
        return ddp__columns_scratch(cap, c->buf[DDP__MEAN_POOL_FWD_X].shape.c);
    case DDP__OP_SCALE_BWD:
        return ddp__columns_scratch(cap, c->buf[DDP__SCALE_BWD_X].shape.c);
    case DDP__OP_LOSS:
        return cap * (sizeof(double) + sizeof(int));
    case DDP__OP_SQNORM:
        return norm_scratch(c);
    case DDP__OP_OPTIM:
        return trust_scratch(c) + unit_scratch(c);
    default:
        return 0;
    }
}

int ddp__cuda_kernels_prepare(const struct ddp__call *c)
{
    int rc;

    if (c->op == DDP__OP_LOSS && c->loss.kind == DDP_CUSTOM_LOSS)
        return ddp__fail(DDP_ENODEV, "a custom loss runs on CPU "
                                     "workers");
    if (c->op == DDP__OP_OPTIM && c->optim.o.kind == DDP_CUSTOM_OPTIMIZER)
        return ddp__fail(DDP_ENODEV, "a custom optimizer runs on CPU "
                                     "workers");
    if (c->op == DDP__OP_BN_BWD && c->bn.from_x)
        return ddp__fail(DDP_ENODEV, "batch norm: a slope that x tells runs on "
                                     "CPU workers");
    if ((rc = ddp__call_one_type(c, DDP__CUDA_TYPES)) < 0 ||
        (rc = check_sizes(c)) < 0)
        return rc;
    ddp__cuda_needs(scratch_of(c));
    return 0;
}
