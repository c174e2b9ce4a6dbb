/* loss.c - losses and the counts of right answers, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A label that is no class cannot be reported to the host: its loss is NaN.
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "tasks.h"

_Static_assert(DDP__STAT_LOSS == 0 && DDP__STAT_DIVISOR == 1 &&
                   DDP__STAT_COUNT == 2 && DDP__STAT_TOP1 == 3 &&
                   DDP__STAT_TOP5 == 4 && DDP__STAT_TOP10 == 5 &&
                   DDP__STAT_UPDATES == 6 && DDP__STATS == 7,
               "as losses.h and updates.h have them");

/* Two kernels: a block per sample writes its loss and rank to scratch
 * memory, then one block adds them up in a fixed order, so that the sums do
 * not depend on timing. */
int ddp__cuda_loss(const struct ddp__task *t)
{
    const struct ddp__loss *l = &t->call->loss;
    struct ddp__k_loss p = {.blocks = (unsigned)t->n,
                            .type = t->call->buf[DDP__LOSS_X].type,
                            .type_dx = t->call->buf[DDP__LOSS_DX].type,
                            .kind = l->kind,
                            .classes = ddp__loss_info(l->kind)->target ==
                                       DDP__TARGET_CLASS,
                            .smoothing = l->smoothing,
                            .threshold = l->threshold,
                            .gamma = l->gamma,
                            .alpha = l->alpha,
                            .aux = l->aux,
                            .taught = l->taught,
                            .n = t->n,
                            .cap = t->call->cap,
                            .len = ddp__len(t, DDP__LOSS_X) / (size_t)t->n,
                            .x = t->data[DDP__LOSS_X],
                            .dx = t->data[DDP__LOSS_DX],
                            .label = t->data[DDP__LOSS_TARGET],
                            .target = t->data[DDP__LOSS_TARGET],
                            .weight = t->data[DDP__LOSS_WEIGHT],
                            .scale = t->data[DDP__LOSS_SCALE],
                            .stats = t->data[DDP__LOSS_STATS],
                            .add = t->accumulate};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    if (rc < 0)
        return rc;
    p.shares = p.classes && t->call->buf[DDP__LOSS_TARGET].type != DDP_I32;
    p.positive = l->positives ? p.weight + p.cap + 1 : NULL;
    p.loss = place.scratch;
    p.rank = (int *)(p.loss + t->n);
    if ((rc = DDP__LAUNCH(&place, loss_rows, &p)) < 0)
        return rc;
    p.blocks = 1;
    return DDP__LAUNCH(&place, loss_sum, &p);
}
