/* comm_op.h - an exchange: of a vector that ranks sum, or of the news of a step
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COMM_OP_H
#define DDP_COMM_OP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "engine/parts.h"
#include "runtime/context.h"
#include "runtime/direct.h"

struct ddp__comm {
    struct ddp__net_op op; /* first */
    struct ddp__engine *e; /* not owned */
    int64_t step, index;   /* of the step; index: among those of the engine */
    struct ddp__total total;
    enum ddp__exchange_kind kind; /* of a vector */
    struct ddp__split split;
    struct ddp__trace *trace; /* not owned; NULL: none */
    double begin;             /* when all handles were open; 0: not yet */
    bool alone;               /* after a failed submission: no data */
    bool empty;               /* own sub-batches, and this rank has none */
    bool checked;             /* news: with the checks of slices */
    bool kept;                /* news: with the norms of sums */
    struct ddp__direct at;    /* where the vectors are opened */
    struct ddp__handle room;  /* for messages; h NULL: none */
    atomic_int left;          /* handles that are not open yet */
    bool *first;   /* by lane: has a piece; owned, like what follows */
    void **piece;  /* by lane: of this rank */
    void **near;   /* by lane: of all ranks, if they map them (near.h) */
    char *nothing; /* if alone: zeros in place of pieces and sum */
    struct ddp__parts parts;
    struct ddp__gather gather;
    bool begun;     /* the gather has */
    double **block; /* by lane: the statistics of a piece */
    int *pieces;    /* by rank: how many */
};

/* Ranks with sub-batches of their own have a piece each, in lane 0. */
static inline int ddp__comm_lane(const struct ddp__comm *c, int lane)
{
    return c->e->spec.own ? 0 : lane;
}

static inline struct ddp__handle *ddp__comm_handle(const struct ddp__comm *c,
                                                   int lane)
{
    return ddp__total_handle(c->e, ddp__comm_lane(c, lane), c->total);
}

static inline bool ddp__comm_is_ours(const struct ddp__comm *c, int lane)
{
    if (c->e->spec.own)
        return lane == c->e->ddp->net.wire.rank;
    return lane >= c->e->lane_begin && lane < c->e->lane_end;
}

static inline bool ddp__comm_gathers(const struct ddp__comm *c)
{
    return c->kind == DDP__ALL_GATHER;
}

/* Ranks add what they map, and messages are notices. */
static inline bool ddp__comm_is_near(const struct ddp__comm *c)
{
    return c->e->near && c->total.kind == DDP__TOTAL_BUCKET;
}

static inline bool ddp__comm_is_half(const struct ddp__comm *c)
{
    return c->total.kind == DDP__TOTAL_BUCKET && c->e->spec.wire == DDP_BF16;
}

/* Messages are in main memory, and the vectors are not. */
static inline bool ddp__comm_is_staged(const struct ddp__comm *c)
{
    return c->at.space && !c->at.messages;
}

static inline int ddp__comm_room_node(const struct ddp__comm *c)
{
    return c->at.messages ? c->at.node : DDP__MAIN_MEMORY;
}

#endif
