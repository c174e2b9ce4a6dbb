/* reduce.c - the reduction of gradients: owners of buckets, the tree over lanes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine/engine.h"
#include "engine/reduce.h"
#include "engine/vector.h"

/* The fixed cost of the tasks and transfers of a bucket, in elements. */
enum { BUCKET_COST = 4 << 20 };

void ddp__reduce_owners(struct ddp__engine *e)
{
    size_t load[DDP__MAX_WORKERS] = {0};

    for (int b = 0; b < e->params->buckets; b++) {
        int least = 0;

        for (int w = 1; w < e->ddp->workers; w++)
            if (load[w] < load[least])
                least = w;
        load[least] += e->params->bucket[b].len + BUCKET_COST;
        e->owner[b] = least;
    }
}

int ddp__reduce_submit(struct ddp__engine *e, const struct ddp__step *s,
                       int bucket)
{
    int lanes = s->subs < e->spec.lanes ? s->subs : e->spec.lanes, rc;
    const struct ddp__call *call =
        bucket < 0 ? &e->merge_stats : &e->merge_bucket[bucket];

    for (int stride = 1; stride < lanes; stride *= 2)
        for (int l = 0; l + stride < lanes; l += 2 * stride) {
            struct ddp__lane *a = &e->lane[l], *b = &e->lane[l + stride];
            struct ddp__handle *from =
                bucket < 0 ? &b->stats : &b->grad[bucket];
            struct ddp__handle *buf[] = {
                [DDP__MERGE_DST] = bucket < 0 ? &a->stats : &a->grad[bucket],
                [DDP__MERGE_SRC] = from};

            rc = ddp__vector_submit(e, s, call,
                                    bucket < 0 ? 0 : e->owner[bucket], buf);
            if (rc < 0)
                return rc;
            ddp__handle_drop(from);
        }
    return 0;
}
