/* parts.h - a sum over ranks of a long vector, part by part
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PARTS_H
#define DDP_PARTS_H

#include "engine/exchange.h"

struct ddp__parts {
    /* What all parts have in common; fill in piece, sum, size, half and add,
     * and for vectors in the memory of a device space, device and room. */
    struct ddp__exchange all;
    size_t len;                 /* elements of the vector */
    int others;                 /* pieces of other ranks */
    struct ddp__exchange *part; /* owned */
    int count, begun, ended;
};

/* How many parts such a vector has, and the elements of room that it needs. */
int ddp__parts_count(size_t len, int ranks);
size_t ddp__parts_room(size_t len, int ranks, int others);

/* Elements of it that are exchanged at a time. */
size_t ddp__parts_under_way(size_t len, int ranks);

/* 1: done; 0: call it again.  Each part has a tag, from `tag` on. */
int ddp__parts_poll(struct ddp__parts *p, struct ddp__wire *w,
                    const struct ddp__split *s, int tag);

/* Afterwards, or in place of it. */
void ddp__parts_free(struct ddp__parts *p);

#endif
