/* ops_loss.c - what follows from the table of losses
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stddef.h>

#include "ops_loss.h"

/* A kind without a row does not compile. */
#pragma GCC diagnostic error "-Wswitch"

const struct ddp__loss_info *ddp__loss_info(enum ddp_loss_kind kind)
{
#define X(id, name, rule, target) [DDP_##id] = {name, DDP__TARGET_##target},
    static const struct ddp__loss_info info[] = {DDP__LOSSES(X)
                                                     DDP__CUSTOM_LOSS(X)};
#undef X

    switch (kind) {
#define X(id, name, rule, target) case DDP_##id:
        DDP__LOSSES(X)
        DDP__CUSTOM_LOSS(X)
#undef X
        return &info[kind];
    }
    return NULL;
}
