/* bn_kernels.c - batch norm by libddp's kernels, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What cuDNN has no engine for: channels that are no multiple of 8, f32 on
 * some GPUs.  Deterministic as all our kernels are.
 */
#include "config.h"

#include "tasks.h"

/* x is buffer 0, the parameters are buffer w. */
static struct ddp__k_bn bn_arguments(const struct ddp__task *t, int w,
                                     bool aligned)
{
    int c = t->call->buf[0].shape.c;

    return (struct ddp__k_bn){.type = t->call->buf[0].type,
                              .wide = ddp__whole(c) && aligned,
                              .k = ddp__columns(1, ddp__pixels(t, 0), c),
                              .act = t->call->bn.act,
                              .eps = t->call->bn.eps,
                              .n = t->n,
                              .x = t->data[0],
                              .w = t->data[w]};
}

/* Residual r is a buffer if the call has one. */
static int launch_normalise(const struct ddp__task *t, struct ddp__k_bn *p,
                            int r, const struct ddp__cuda_place *place)
{
    p->y = t->data[2];
    p->r = t->call->bn.residual ? t->data[r] : NULL;
    p->mask = t->call->bn.mask ? t->data[5] : NULL;
    p->blocks = ddp__columns_blocks(&p->k);
    return DDP__LAUNCH(place, bn_normalise, p);
}

/* Whether buffers 0, 2 and, if it is there, r lie well. */
static bool is_aligned(const struct ddp__task *t, int r)
{
    return DDP__ALIGNED(t, 0, 2, t->call->bn.residual ? r : 0);
}

/* x, w, y, stat [, r] [, mask] */
int ddp__cuda_bn_kernels_fwd(const struct ddp__task *t)
{
    struct ddp__k_bn p = bn_arguments(t, 1, is_aligned(t, 4));
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    p.part = place.scratch;
    p.mean = p.stat = t->data[3];
    p.blocks = ddp__columns_blocks(&p.k);
    if ((rc = DDP__LAUNCH(&place, bn_measure, &p)) < 0)
        return rc;
    p.blocks = ddp__columns_finish_blocks(&p.k);
    if ((rc = DDP__LAUNCH(&place, bn_statistics, &p)) < 0)
        return rc;
    return launch_normalise(t, &p, 4, &place);
}

/* x, w, y [, r] */
int ddp__cuda_bn_kernels_eval(const struct ddp__task *t)
{
    struct ddp__k_bn p = bn_arguments(t, 1, is_aligned(t, 3));
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    p.mean = p.w + 2 * (size_t)p.k.c;
    return launch_normalise(t, &p, 3, &place);
}

/* x, y or mask, dy, w, stat, g, dx [, dr] */
int ddp__cuda_bn_kernels_bwd(const struct ddp__task *t)
{
    int dr = t->call->bn.residual ? 7 : 0, y = t->call->bn.mask ? 0 : 1;
    struct ddp__k_bn p = bn_arguments(t, 3, DDP__ALIGNED(t, 0, y, 2, 6, dr));
    struct ddp__cuda_place place;
    int rc;

    if ((rc = ddp__cuda_place(&place)) < 0)
        return rc;
    if (t->call->bn.mask)
        p.mask = t->data[1];
    else
        p.y = t->data[1];
    p.dy = t->data[2];
    p.mean = t->data[4];
    p.g = t->data[5];
    p.add = t->accumulate;
    p.dx = t->data[6];
    p.dr = dr ? t->data[dr] : NULL;
    p.sum = place.scratch;
    p.part = p.sum + 2 * (size_t)p.k.c;
    p.blocks = ddp__columns_blocks(&p.k);
    if ((rc = DDP__LAUNCH(&place, bn_sums, &p)) < 0)
        return rc;
    p.blocks = ddp__columns_finish_blocks(&p.k);
    if ((rc = DDP__LAUNCH(&place, bn_gradients, &p)) < 0)
        return rc;
    p.blocks = ddp__columns_blocks(&p.k);
    return DDP__LAUNCH(&place, bn_spread, &p);
}
