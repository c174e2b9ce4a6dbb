/* comm_room.c - what sums over ranks need in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How many buckets are exchanged at a time depends on the network: all, if it
 * is slower than the backward pass.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/comm_room.h"
#include "engine/engine.h"
#include "engine/parts.h"
#include "engine/shard.h"

/* Pieces of this rank, or of the others. */
static int count_pieces(const struct ddp__split *s, const bool *first, int rank,
                        bool ours)
{
    int n = 0;

    for (int l = 0; l < s->used; l++)
        n += first[l] &&
             (ddp__lanes_rank(s->lanes, s->ranks, l) == rank) == ours;
    return n;
}

/* Bytes for each element of a bucket that is exchanged at a time: slices of
 * others' pieces, and where bf16 is sent, what is sent and what is received. */
static double element_room(const struct ddp__engine *e,
                           const struct ddp__split *s, int bucket, int ours,
                           int others)
{
    double slice = !e->kept_sums                 ? 1.0 / s->ranks
                   : ddp__shard_keeps(e, bucket) ? 1
                                                 : 0;
    double room = 4 * others * slice;

    return e->spec.wire == DDP_BF16 ? room + 2 * (ours + 1) + 2 * (others + 1)
                                    : room;
}

/* Elements of it in main memory, for a GPU. */
static double staged_room(const struct ddp__engine *e, size_t len, int ours)
{
    return e->ddp->gpu_workers && !e->ddp->devices.hybrid
               ? (double)ddp__parts_stage(len, e->ranks, ours)
               : 0;
}

int ddp__comm_room(const struct ddp__engine *e, int subs, double *bytes)
{
    int rank = e->ddp->net.wire.rank, ours, others;
    struct ddp__split s;
    bool *first;

    *bytes = 0;
    if (!ddp__comm_used(e) || e->simulated)
        return 0;
    s = ddp__comm_split(e, subs);
    if (!(first = calloc((size_t)s.lanes, sizeof(*first))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a plan of it");
    ddp__pieces(&s, first);
    ours = count_pieces(&s, first, rank, true);
    others = count_pieces(&s, first, rank, false);
    free(first);
    for (int b = 0; b < e->params->buckets; b++) {
        size_t len = e->reached[b] ? e->params->bucket[b].len : 0;

        *bytes += (double)ddp__parts_under_way(len, e->ranks) *
                      element_room(e, &s, b, ours, others) +
                  4 * staged_room(e, len, ours);
    }
    return 0;
}
