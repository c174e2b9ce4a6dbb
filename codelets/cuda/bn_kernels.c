/* bn_kernels.c - batch norm by libddp's kernels, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What cuDNN has no engine for: channels that are no multiple of 8, f32 on
 * some GPUs, statistics of a whole step.  Deterministic as all our kernels are.
 */
#include "config.h"

#include "backend.h"
#include "bn_kernels.h"
#include "launch.h"
#include "rows.h"
#include "tasks.h"

/* x is an operand. */
static struct ddp__k_bn bn_arguments(const struct ddp__task *t, int x,
                                     bool aligned)
{
    int c = t->call->buf[x].shape.c;

    return (struct ddp__k_bn){.type = t->call->buf[x].type,
                              .wide = ddp__whole(c) && aligned,
                              .k = ddp__columns(1, ddp__pixels(t, x), c),
                              .act = t->call->bn.act,
                              .eps = t->call->bn.eps,
                              .n = t->n,
                              .x = t->data[x]};
}

/* r: the operand of the residual. */
static int launch_normalise(const struct ddp__task *t, struct ddp__k_bn *p,
                            int r, const struct ddp__cuda_place *place)
{
    p->y = t->data[DDP__BN_FWD_Y];
    p->r = t->data[r];
    p->mask = t->call->bn.mask ? t->data[DDP__BN_FWD_MASK] : NULL;
    p->blocks = ddp__columns_blocks(&p->k);
    return DDP__LAUNCH(place, bn_normalise, p);
}

/* Whether x, y and, if it is there, r lie well. */
static bool is_aligned(const struct ddp__task *t, int r)
{
    return DDP__ALIGNED(t, DDP__BN_FWD_X, DDP__BN_FWD_Y, r);
}

/* The moments of chunks; the kernel that joins them has its blocks then. */
static int launch_measure(struct ddp__k_bn *p,
                          const struct ddp__cuda_place *place)
{
    int rc;

    p->part = place->scratch;
    p->blocks = ddp__columns_blocks(&p->k);
    rc = DDP__LAUNCH(place, bn_measure, p);
    p->blocks = ddp__columns_finish_blocks(&p->k);
    return rc;
}

int ddp__cuda_bn_kernels_fwd(const struct ddp__task *t)
{
    struct ddp__k_bn p =
        bn_arguments(t, DDP__BN_FWD_X, is_aligned(t, DDP__BN_FWD_R));
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    p.w = t->data[DDP__BN_FWD_W];
    p.mean = p.stat = t->data[DDP__BN_FWD_STAT];
    p.inverse = t->call->bn.inverse;
    if ((rc = launch_measure(&p, &place)) < 0 ||
        (rc = DDP__LAUNCH(&place, bn_statistics, &p)) < 0)
        return rc;
    return launch_normalise(t, &p, DDP__BN_FWD_R, &place);
}

int ddp__cuda_bn_kernels_eval(const struct ddp__task *t)
{
    struct ddp__k_bn p =
        bn_arguments(t, DDP__BN_EVAL_X, is_aligned(t, DDP__BN_EVAL_R));
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    p.w = t->data[DDP__BN_EVAL_W];
    p.mean = p.w + 2 * (size_t)p.k.c;
    return launch_normalise(t, &p, DDP__BN_EVAL_R, &place);
}

/* An activation goes before, and there is no residual. */
int ddp__cuda_bn_eval_bwd(const struct ddp__task *t)
{
    bool aligned = DDP__ALIGNED(t, DDP__BN_EVAL_BWD_DY, DDP__BN_EVAL_BWD_DX,
                                DDP__BN_EVAL_BWD_DX);
    struct ddp__k_bn p = bn_arguments(t, DDP__BN_EVAL_BWD_DY, aligned);
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    p.w = t->data[DDP__BN_EVAL_BWD_W];
    p.mean = p.w + 2 * (size_t)p.k.c;
    p.scales = true;
    p.y = t->data[DDP__BN_EVAL_BWD_DX];
    p.blocks = ddp__columns_blocks(&p.k);
    return DDP__LAUNCH(&place, bn_normalise, &p);
}

/* What the backward kernels read.  dx is at the place of BN_BWD's, if it is
 * there. */
static struct ddp__k_bn backward_arguments(const struct ddp__task *t, void *dx)
{
    int y = t->call->bn.mask ? DDP__BN_BWD_X : DDP__BN_BWD_SLOPE;
    struct ddp__k_bn p = bn_arguments(
        t, DDP__BN_BWD_X,
        DDP__ALIGNED(t, DDP__BN_BWD_X, y, DDP__BN_BWD_DY,
                     dx ? DDP__BN_BWD_DX : DDP__BN_BWD_X, DDP__BN_BWD_DR));

    if (t->call->bn.mask)
        p.mask = t->data[DDP__BN_BWD_SLOPE];
    else
        p.y = t->data[DDP__BN_BWD_SLOPE];
    p.w = t->data[DDP__BN_BWD_W];
    p.dy = t->data[DDP__BN_BWD_DY];
    p.mean = t->data[DDP__BN_BWD_STAT];
    p.inverse = t->call->bn.inverse;
    p.dx = dx;
    p.dr = t->data[DDP__BN_BWD_DR];
    return p;
}

/* Sums of chunks of rows, then the sums and gradients of each channel. */
static int launch_gradients(const struct ddp__task *t, struct ddp__k_bn *p,
                            const struct ddp__cuda_place *place)
{
    int rc;

    p->g = t->data[DDP__BN_BWD_G];
    p->add = t->accumulate;
    p->sum = place->scratch;
    p->part = p->sum + 2 * (size_t)p->k.c;
    p->blocks = ddp__columns_blocks(&p->k);
    if ((rc = DDP__LAUNCH(place, bn_sums, p)) < 0)
        return rc;
    p->blocks = ddp__columns_finish_blocks(&p->k);
    return DDP__LAUNCH(place, bn_gradients, p);
}

static int launch_spread(struct ddp__k_bn *p,
                         const struct ddp__cuda_place *place)
{
    p->blocks = ddp__columns_blocks(&p->k);
    return DDP__LAUNCH(place, bn_spread, p);
}

int ddp__cuda_bn_kernels_bwd(const struct ddp__task *t)
{
    struct ddp__k_bn p = backward_arguments(t, t->data[DDP__BN_BWD_DX]);
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0 ||
        (rc = launch_gradients(t, &p, &place)) < 0)
        return rc;
    return launch_spread(&p, &place);
}

/* ---- over the sub-batches of a step ------------------------------------- */

int ddp__cuda_bn_sum(const struct ddp__task *t)
{
    struct ddp__k_bn p = bn_arguments(
        t, DDP__BN_SUM_X,
        DDP__ALIGNED(t, DDP__BN_SUM_X, DDP__BN_SUM_X, DDP__BN_SUM_X));
    struct ddp__cuda_place place;
    int rc;

    p.total = t->data[DDP__BN_SUM_SUM];
    p.add = t->accumulate;
    if ((rc = ddp__cuda_place(&place)) < 0 ||
        (rc = launch_measure(&p, &place)) < 0)
        return rc;
    return DDP__LAUNCH(&place, bn_collect, &p);
}

int ddp__cuda_bn_sync(const struct ddp__task *t)
{
    struct ddp__k_bn p =
        bn_arguments(t, DDP__BN_SYNC_X, is_aligned(t, DDP__BN_SYNC_R));
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    p.w = t->data[DDP__BN_SYNC_W];
    p.mean = p.stat = t->data[DDP__BN_SYNC_STAT];
    p.total = t->data[DDP__BN_SYNC_SUM];
    p.blocks = ((unsigned)p.k.c + DDP__THREADS - 1) / DDP__THREADS;
    if ((rc = DDP__LAUNCH(&place, bn_moments, &p)) < 0)
        return rc;
    return launch_normalise(t, &p, DDP__BN_SYNC_R, &place);
}

int ddp__cuda_bn_sum_bwd(const struct ddp__task *t)
{
    struct ddp__k_bn p = backward_arguments(t, NULL);
    struct ddp__cuda_place place;
    int rc;

    p.count = p.mean + 2 * (size_t)p.k.c;
    p.total = t->data[DDP__BN_SUM_BWD_DSUM];
    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    return launch_gradients(t, &p, &place);
}

int ddp__cuda_bn_sync_bwd(const struct ddp__task *t)
{
    struct ddp__k_bn p = backward_arguments(t, t->data[DDP__BN_SYNC_BWD_DX]);
    struct ddp__cuda_place place;
    int rc;

    p.count = p.mean + 2 * (size_t)p.k.c;
    p.total = t->data[DDP__BN_SYNC_BWD_DSUM];
    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    return launch_spread(&p, &place);
}
