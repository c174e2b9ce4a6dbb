/* bn_put.c - gradients of batch norms from where cuDNN writes them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * cuDNN writes the gradients of scale and of shift to two aligned places.  A
 * small kernel puts them into, or adds them to, what a lane's merge takes, and
 * the statistics with them.  One launch serves all norms of a task, which it
 * ends; a launch takes longer than its work.
 */
#include "config.h"

#include "bn.h"
#include "launch.h"
#include "variant.h"

static struct pending {
    struct ddp__k_bn_puts puts;
    size_t used; /* of the worker's sums */
} pending[DDP__CUDA_WORKERS];

static int put_all(const struct ddp__cuda_worker *w)
{
    struct pending *p = &pending[w->number];
    int rc;

    if (p->puts.count == 0)
        return 0;
    rc = ddp__cuda_launched(ddp__k_bn_put(&p->puts, w->stream), "bn_put");
    p->puts.blocks = 0;
    p->puts.count = 0;
    p->used = 0;
    return rc;
}

/* Nothing orders the norms of one launch. */
static bool has(const struct pending *p, const float *g)
{
    for (int i = 0; i < p->puts.count; i++)
        if (p->puts.of[i].g == g)
            return true;
    return false;
}

int ddp__cuda_bn_sums(struct ddp__cuda_worker *w, struct ddp__k_bn_given *to)
{
    size_t size = ddp__cuda_round(4 * (size_t)to->c);
    struct pending *p = &pending[w->number];
    int rc = 0;

    if (p->puts.count == DDP__PUTS || p->used + 2 * size > w->sums_size ||
        has(p, to->g))
        rc = put_all(w);
    to->dscale = (float *)(w->sums + p->used);
    to->dshift = (float *)(w->sums + p->used + size);
    return rc;
}

void ddp__cuda_bn_put(const struct ddp__cuda_worker *w,
                      const struct ddp__k_bn_given *of)
{
    struct pending *p = &pending[w->number];

    p->puts.of[p->puts.count++] = *of;
    p->puts.blocks += of->blocks;
    p->used += 2 * ddp__cuda_round(4 * (size_t)of->c);
}

int ddp__cuda_bn_settle(void)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();

    return w ? put_all(w) : DDP_ENODEV;
}
