/* dropout.c - dropout and stochastic depth, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "tasks.h"

int ddp__cuda_dropout(const struct ddp__task *t)
{
    size_t len = ddp__len(t, DDP__DROPOUT_X) / (size_t)t->n;
    struct ddp__k_dropout p = {
        .items = (unsigned)((size_t)t->n * ddp__groups(len)),
        .type = t->call->buf[DDP__DROPOUT_X].type,
        .wide = len % DDP__WIDTH == 0 &&
                DDP__ALIGNED(t, DDP__DROPOUT_X, DDP__DROPOUT_Y),
        .whole = t->call->dropout.whole_sample,
        .narrow_ids = t->call->buf[DDP__DROPOUT_IDS].type == DDP_I32,
        .x = t->data[DDP__DROPOUT_X],
        .ids = t->data[DDP__DROPOUT_IDS],
        .y = t->data[DDP__DROPOUT_Y],
        .len = len,
        .seed = t->seed,
        .layer = t->call->dropout.layer,
        .p = t->call->dropout.p,
        .factor = (float)(1 / (1 - (double)t->call->dropout.p))};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, dropout, &p);
}
