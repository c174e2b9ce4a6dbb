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
    /* What all parts share.  The caller sets kind, piece, sum, size, half and
     * add; also space, device and room if messages are in the memory of a
     * device.  For an all-gather, the piece of lane 0 is the sum. */
    struct ddp__exchange all;
    size_t len;              /* elements of the vector */
    int ours, others;        /* pieces of this rank, and of the others */
    struct ddp__stage stage; /* if messages are elsewhere than the vector */
    struct ddp__part *part;  /* owned */
    int count, begun, ended;
};

/* The number of parts of a vector of len elements; the length of the longest;
 * the elements that all parts in flight receive from other ranks, for their
 * slices or as a whole. */
int ddp__parts_count(size_t len, int ranks);
size_t ddp__parts_longest(size_t len, int ranks);
size_t ddp__parts_room(size_t len, int ranks, int others, bool whole);

/* Elements of all parts in flight; the elements that a stage (stage.h) needs
 * for this rank's pieces of them. */
size_t ddp__parts_under_way(size_t len, int ranks);
size_t ddp__parts_stage(size_t len, int ranks, int ours);

/* The elements begin..end-1 of part i that are in a rank's slice. */
void ddp__parts_slice(size_t len, int ranks, int rank, int i, size_t *begin,
                      size_t *end);

/* Begin and continue the exchange of all parts.  1: done; 0: call it again.
 * The parts use the tags from `tag` on. */
int ddp__parts_poll(struct ddp__parts *p, struct ddp__wire *w,
                    const struct ddp__split *s, int tag);

/* After the last poll, or to give up. */
void ddp__parts_free(struct ddp__parts *p);

#endif
