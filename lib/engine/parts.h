/* parts.h - a sum over ranks of a long vector, part by part
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PARTS_H
#define DDP_PARTS_H

#include "engine/exchange.h"
#include "engine/stage.h"

struct ddp__part {
    struct ddp__exchange x;
    struct ddp__staged staged;
    enum { DDP__PART_COMES, DDP__PART_TRAVELS, DDP__PART_GOES } state;
};

struct ddp__parts {
    /* What all parts have in common; fill in kind, piece, sum, size, half and
     * add, where messages are in the memory of a device space and device, and
     * there room.  To gather, the piece of lane 0 is the sum. */
    struct ddp__exchange all;
    size_t len;              /* elements of the vector */
    int ours, others;        /* pieces of this rank, and of the others */
    struct ddp__stage stage; /* where messages are not where the vector is */
    struct ddp__part *part;  /* owned */
    int count, begun, ended;
};

/* How many parts such a vector has, the longest, and the elements of room for
 * others' pieces of those under way. */
int ddp__parts_count(size_t len, int ranks);
size_t ddp__parts_longest(size_t len, int ranks);
size_t ddp__parts_room(size_t len, int ranks, int others);

/* Elements of it that are exchanged at a time, and of room for those of the
 * pieces of this rank on a stage. */
size_t ddp__parts_under_way(size_t len, int ranks);
size_t ddp__parts_stage(size_t len, int ranks, int ours);

/* Of part i, what has the slice of a rank. */
void ddp__parts_slice(size_t len, int ranks, int rank, int i, size_t *begin,
                      size_t *end);

/* 1: done; 0: call it again.  Each part has a tag, from `tag` on. */
int ddp__parts_poll(struct ddp__parts *p, struct ddp__wire *w,
                    const struct ddp__split *s, int tag);

/* Afterwards, or in place of it. */
void ddp__parts_free(struct ddp__parts *p);

#endif
