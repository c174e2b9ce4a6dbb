/* parts.c - a sum over ranks of a long vector, part by part
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * While one part is added others are under way; and what is under way at a time
 * has to be in caches, if it goes through shared memory.  From and to a GPU it
 * is copied while others travel.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/parts.h"

/* Elements.  With many ranks parts are longer: a short message costs more than
 * its bytes do. */
enum { PART = 1 << 19, LEAST_SLICE = 1 << 14 };

enum { AHEAD = 4 }; /* parts under way at a time */

static size_t part_len(int ranks)
{
    size_t least = (size_t)ranks * LEAST_SLICE;

    return least > PART ? least : PART;
}

int ddp__parts_count(size_t len, int ranks)
{
    return (int)((len + part_len(ranks) - 1) / part_len(ranks));
}

size_t ddp__parts_longest(size_t len, int ranks)
{
    return len < part_len(ranks) ? len : part_len(ranks);
}

/* Parts that have memory of their own. */
static size_t slots(size_t len, int ranks)
{
    int count = ddp__parts_count(len, ranks);

    return (size_t)(count < AHEAD ? count : AHEAD);
}

/* Of one part; slices differ by an element. */
static size_t part_room(size_t len, int ranks, int others, bool whole)
{
    size_t slices = whole ? 1 : (size_t)ranks;

    return (size_t)others * (ddp__parts_longest(len, ranks) / slices + 1);
}

size_t ddp__parts_room(size_t len, int ranks, int others, bool whole)
{
    return part_room(len, ranks, others, whole) * slots(len, ranks);
}

size_t ddp__parts_under_way(size_t len, int ranks)
{
    size_t most = AHEAD * part_len(ranks);

    return len < most ? len : most;
}

/* Of the pieces, and of the sum if lane 0 is another rank's. */
static size_t slot_len(size_t len, int ranks, int ours)
{
    return (size_t)(ours + 1) * ddp__parts_longest(len, ranks);
}

size_t ddp__parts_stage(size_t len, int ranks, int ours)
{
    return slots(len, ranks) * slot_len(len, ranks, ours);
}

static int parts_new(struct ddp__parts *p, int ranks)
{
    p->count = ddp__parts_count(p->len, ranks);
    p->part = calloc((size_t)p->count, sizeof(*p->part));
    return p->part ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for an exchange");
}

/* ---- a part ------------------------------------------------------------- */

static size_t part_begin(const struct ddp__parts *p, int i, int ranks)
{
    size_t begin = (size_t)i * part_len(ranks);

    return begin < p->len ? begin : p->len;
}

static size_t part_end(const struct ddp__parts *p, int i, int ranks)
{
    return part_begin(p, i + 1, ranks);
}

void ddp__parts_slice(size_t len, int ranks, int rank, int i, size_t *begin,
                      size_t *end)
{
    const struct ddp__parts p = {.len = len};
    size_t first = part_begin(&p, i, ranks);
    size_t n = part_end(&p, i, ranks) - first;

    *begin = first + ddp__slice_begin(n, ranks, rank);
    *end = first + ddp__slice_begin(n, ranks, rank + 1);
}

/* Only this rank's slice of it: else the whole part. */
static struct ddp__cut cut_of(const struct ddp__parts *p, int i,
                              const struct ddp__split *s, int rank, bool slice)
{
    size_t begin = part_begin(p, i, s->ranks), size = p->all.size;
    size_t n = part_end(p, i, s->ranks) - begin;

    return (struct ddp__cut){
        .begin = begin * size,
        .n = n * size,
        .from =
            slice ? ddp__exchange_slice(&p->all, n, s->ranks, rank) * size : 0,
        .to =
            (slice ? ddp__exchange_slice(&p->all, n, s->ranks, rank + 1) : n) *
            size};
}

static int fetch(struct ddp__parts *p, int i, struct ddp__wire *w,
                 const struct ddp__split *s)
{
    struct ddp__cut c =
        cut_of(p, i, s, w->rank, p->all.kind == DDP__ALL_GATHER);
    size_t slot = slot_len(p->len, s->ranks, p->ours) * p->all.size;
    struct ddp__part *part = &p->part[i];
    int rc = ddp__stage_fetch(&p->stage, &part->staged, p->all.piece, s->lanes,
                              &c, p->stage.room + (size_t)(i % AHEAD) * slot);

    part->x.piece = part->staged.piece;
    part->x.sum = part->staged.sum;
    part->x.end = c.n / p->all.size;
    return rc;
}

/* Where the vector is in the memory that messages are in. */
static void cut(struct ddp__parts *p, int i, const struct ddp__split *s)
{
    p->part[i].x.begin = part_begin(p, i, s->ranks);
    p->part[i].x.end = part_end(p, i, s->ranks);
}

/* Its memory is that of a part that has ended. */
static int begin_part(struct ddp__parts *p, int i, struct ddp__wire *w,
                      const struct ddp__split *s)
{
    struct ddp__exchange *x = &p->part[i].x;
    size_t room = p->all.size * part_room(p->len, s->ranks, p->others,
                                          p->all.kind == DDP__REDUCE);

    *x = p->all;
    if (x->room)
        x->room += (size_t)(i % AHEAD) * room;
    if (p->stage.space)
        return fetch(p, i, w, s);
    cut(p, i, s);
    return 0;
}

static int store(struct ddp__parts *p, int i, struct ddp__wire *w,
                 const struct ddp__split *s)
{
    bool slice =
        p->all.kind == DDP__REDUCE_SCATTER || p->all.kind == DDP__REDUCE;
    struct ddp__cut c = cut_of(p, i, s, w->rank, slice);

    return p->stage.space
               ? ddp__stage_store(&p->stage, &p->part[i].staged, p->all.sum, &c)
               : 0;
}

/* 1: it is over; 0: not yet. */
static int poll_part(struct ddp__parts *p, int i, struct ddp__wire *w,
                     const struct ddp__split *s, int tag)
{
    struct ddp__part *part = &p->part[i];
    int rc = 1;

    if (part->state != DDP__PART_TRAVELS)
        rc = ddp__stage_poll(&p->stage, &part->staged);
    if (rc == 1 && part->state == DDP__PART_COMES) {
        rc = ddp__exchange_begin(&part->x, w, s, tag + i);
        part->state = DDP__PART_TRAVELS;
    }
    if (rc >= 0 && part->state == DDP__PART_TRAVELS) {
        if ((rc = ddp__exchange_poll(&part->x)) != 1)
            return rc;
        part->state = DDP__PART_GOES;
        if ((rc = store(p, i, w, s)) == 0)
            rc = ddp__stage_poll(&p->stage, &part->staged);
    }
    return rc;
}

static void end_part(struct ddp__parts *p, struct ddp__part *part)
{
    ddp__exchange_end(&part->x);
    ddp__stage_end(&p->stage, &part->staged);
}

/* Parts end in the order in which they began, as far as memory goes. */
int ddp__parts_poll(struct ddp__parts *p, struct ddp__wire *w,
                    const struct ddp__split *s, int tag)
{
    int rc = p->part ? 0 : parts_new(p, s->ranks);

    while (rc == 0 && p->begun < p->count && p->begun < p->ended + AHEAD)
        rc = begin_part(p, p->begun++, w, s);
    for (int i = p->ended; rc >= 0 && i < p->begun; i++) {
        rc = poll_part(p, i, w, s, tag);
        if (rc == 1 && i == p->ended)
            end_part(p, &p->part[p->ended++]);
    }
    return rc < 0 ? rc : p->ended == p->count;
}

void ddp__parts_free(struct ddp__parts *p)
{
    for (int i = p->ended; i < p->begun; i++)
        ddp__stage_end(&p->stage, &p->part[i].staged);
    free(p->part);
}
