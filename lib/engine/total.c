/* total.c - what the lanes of a step add up: vectors, and their merges
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine/engine.h"
#include "engine/total.h"

struct ddp__handle *ddp__total_handle(const struct ddp__engine *e, int lane,
                                      struct ddp__total t)
{
    struct ddp__lane *l = &e->lane[lane];

    switch (t.kind) {
    case DDP__TOTAL_BUCKET:
        return &l->grad[t.at];
    case DDP__TOTAL_SUM:
        return &l->sum[t.at];
    case DDP__TOTAL_STATS:
        break;
    }
    return &l->stats;
}

const struct ddp__call *ddp__total_merge(const struct ddp__engine *e,
                                         struct ddp__total t)
{
    switch (t.kind) {
    case DDP__TOTAL_BUCKET:
        return &e->merge_bucket[t.at];
    case DDP__TOTAL_SUM:
        return &e->merge_sum[t.at];
    case DDP__TOTAL_STATS:
        break;
    }
    return &e->merge_stats;
}
