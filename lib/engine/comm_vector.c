/* comm_vector.c - the pieces of a vector, in the memory of this rank
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/comm_op.h"
#include "engine/comm_vector.h"
#include "engine/near.h"
#include "engine/shard.h"

static const struct ddp__view *vector(const struct ddp__comm *c)
{
    return &ddp__total_merge(c->e, c->total)->buf[DDP__MERGE_DST];
}

size_t ddp__comm_elements(const struct ddp__comm *c)
{
    return (size_t)vector(c)->shape.c;
}

size_t ddp__comm_element_size(const struct ddp__comm *c)
{
    return ddp__dtype_size(vector(c)->type);
}

/* In place of a sum of no sub-batches: what changes no other number's bits. */
static void fill_none(const struct ddp__comm *c, void *piece)
{
    bool wide = ddp__comm_element_size(c) == sizeof(double);

    for (size_t i = 0; i < ddp__comm_elements(c); i++)
        if (wide)
            ((double *)piece)[i] = -0.0;
        else
            ((float *)piece)[i] = -0.0f;
}

static size_t others_room(const struct ddp__comm *c)
{
    bool whole = c->kind == DDP__REDUCE;
    bool none =
        ddp__comm_is_near(c) || (whole && !ddp__shard_keeps(c->e, c->total.at));
    int others = none ? 0 : c->parts.others;

    return ddp__parts_room(c->parts.len, c->split.ranks, others, whole);
}

size_t ddp__comm_room_size(const struct ddp__comm *c)
{
    size_t len = others_room(c);

    if (ddp__comm_is_staged(c))
        len += ddp__parts_stage(c->parts.len, c->split.ranks, c->parts.ours);
    return len * ddp__comm_element_size(c) + 1;
}

static void *memory_of(const struct ddp__comm *c, int lane)
{
    return ddp__handle_memory(ddp__comm_handle(c, lane), c->at.node);
}

/* The slice of this rank is in it. */
static int find_sum(struct ddp__comm *c, size_t size)
{
    c->piece[0] = c->parts.all.sum = c->alone ? c->nothing : memory_of(c, 0);
    return c->piece[0] ? 0 : ddp__buffer_fail(size);
}

/* Without memory there is nothing to send: the others learn by our end. */
static int find_vectors(struct ddp__comm *c)
{
    size_t size = ddp__comm_elements(c) * ddp__comm_element_size(c);

    if (c->alone && !(c->nothing = calloc(2, size)))
        return ddp__buffer_fail(2 * size);
    if (ddp__comm_gathers(c))
        return find_sum(c, size);
    for (int l = 0; l < c->split.lanes; l++)
        if (c->first[l] && ddp__comm_is_ours(c, l) &&
            !(c->piece[l] = c->alone ? c->nothing : memory_of(c, l)))
            return ddp__buffer_fail(size);
    if (c->empty && !c->alone)
        fill_none(c, c->piece[c->e->ddp->net.wire.rank]);
    c->parts.all.sum = ddp__comm_is_ours(c, 0) ? c->piece[0]
                       : c->alone              ? c->nothing + size
                                               : memory_of(c, 0);
    return c->parts.all.sum ? 0 : ddp__buffer_fail(size);
}

static ddp__add_f *addition(const struct ddp__comm *c)
{
    return ddp__comm_is_half(c)                          ? ddp__add_bf16
           : ddp__comm_element_size(c) == sizeof(double) ? ddp__add_f64
                                                         : ddp__add_f32;
}

/* Behind that for others' pieces is that for parts of the vectors of a GPU. */
static int find_room(struct ddp__comm *c)
{
    char *room;

    if (!c->room.h)
        return 0;
    if (!(room = ddp__handle_memory(&c->room, ddp__comm_room_node(c))))
        return c->at.messages ? ddp__device_buffer_fail(c->room.size)
                              : ddp__buffer_fail(c->room.size);
    c->parts.all.room = room;
    if (ddp__comm_is_staged(c))
        c->parts.stage = (struct ddp__stage){
            c->at.space, c->at.device,
            room + others_room(c) * ddp__comm_element_size(c)};
    return 0;
}

static int begin_vector(struct ddp__comm *c)
{
    struct ddp__exchange *x = &c->parts.all;

    x->kind = c->kind;
    if (c->kind == DDP__REDUCE)
        x->root = c->e->keeper[c->total.at];
    x->piece = c->piece;
    x->size = ddp__comm_element_size(c);
    x->half = ddp__comm_is_half(c);
    x->add = addition(c);
    if (ddp__comm_is_near(c)) {
        ddp__near_pieces(c->e, c->total.at, c->near);
        x->near = c->near;
    }
    x->absent = c->alone;
    if (c->at.messages) {
        x->space = c->at.space;
        x->device = c->at.device;
    }
    return find_room(c) < 0 ? ddp_errcode() : find_vectors(c);
}

int ddp__comm_poll_vector(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct ddp__comm *c = (struct ddp__comm *)op;
    int rc = c->parts.all.sum ? 0 : begin_vector(c);

    return rc < 0 ? rc : ddp__parts_poll(&c->parts, w, &c->split, c->op.tag);
}
