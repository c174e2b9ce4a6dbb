/* exchange.h - a sum over ranks, as messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An exchange never blocks: poll it until it is done.  All ranks make the same
 * exchanges; those in flight at the same time have different tags.
 */
#ifndef DDP_EXCHANGE_H
#define DDP_EXCHANGE_H

#include <stdbool.h>

#include "engine/lanes.h"
#include "engine/messages.h"
#include "ops_backend.h"
#include "wire.h"

/* ---- the sum of a vector --------------------------------------------------
 */

/* to[i] += from[i] for n elements. */
typedef void ddp__add_f(void *to, const void *from, size_t n);
ddp__add_f ddp__add_f32;  /* as MERGE does */
ddp__add_f ddp__add_bf16; /* of f32, rounded to bf16 */
ddp__add_f ddp__add_f64;  /* as MERGE_STATS does */

/* Every rank has pieces, each the sum of some lanes, and receives the sum of
 * all pieces.  In the first half (reduce-scatter) each rank receives the
 * others' pieces of its slice and adds them; in the second (all-gather) the
 * ranks send each other their slices of the sum.  For an all-gather alone, this
 * rank's slice is in `sum` already.  A reduce is a reduce-scatter in which the
 * root's slice is the whole vector. */
enum ddp__exchange_kind {
    DDP__ALL_REDUCE,
    DDP__REDUCE_SCATTER,
    DDP__REDUCE,
    DDP__ALL_GATHER
};

/* The first of n elements in a rank's slice; the last rank's ends at n. */
size_t ddp__slice_begin(size_t n, int ranks, int rank);

struct ddp__exchange {
    struct ddp__messages m;
    enum ddp__exchange_kind kind;
    int root; /* of a reduce */
    struct ddp__split split;
    /* By lane: the pieces of this rank, which the additions overwrite; NULL:
     * another rank has the piece, or nobody.  Not owned, like sum. */
    void *const *piece;
    void *sum;         /* lane 0's piece on the rank that has it */
    size_t begin, end; /* the elements to exchange */
    size_t size;       /* of an element */
    bool half;         /* f32 with the values of bf16; messages are bf16 */
    ddp__add_f *add;
    /* The memory with pieces, sum and room: a device's (f32 only, not half);
     * NULL: main memory. */
    const struct ddp__space *space;
    int device;
    /* By lane: the pieces of all ranks, which map each other's; messages are
     * notices then.  Each rank has its sum in its first lane.  NULL: messages
     * have data.  Not owned. */
    void *const *near;
    bool absent;        /* near: this rank has no data, so no sum is made */
    char *said;         /* near, by rank: its last notice; owned */
    char *room;         /* there, for others' pieces; NULL: allocated here */
    char *own_room;     /* owned, like the next four */
    bool *first;        /* by lane: has a piece */
    char **block;       /* by lane: this rank's slice of the piece */
    uint16_t *out, *in; /* half: messages to send, and received */
    size_t outs;        /* elements in out so far */
    bool added, over;
};

/* The first of n elements in a rank's slice, by kind and root. */
size_t ddp__exchange_slice(const struct ddp__exchange *x, size_t n, int ranks,
                           int rank);

/* The first element of the vector whose sum a rank makes. */
size_t ddp__exchange_begins(const struct ddp__exchange *x, int rank);

/* Set wire, split and tag, allocate, and send the first messages.  DDP_ENOMEM,
 * or the error of the MPI module. */
int ddp__exchange_begin(struct ddp__exchange *x, struct ddp__wire *w,
                        const struct ddp__split *s, int tag);
int ddp__exchange_poll(struct ddp__exchange *x); /* 1: done; 0: not yet */
void ddp__exchange_end(struct ddp__exchange *x);

/* ---- a vector of one rank --------------------------------------------------
 */

/* A broadcast: every rank receives the root's data. */
struct ddp__pass {
    struct ddp__messages m;
    int root;
    char *data; /* not owned */
    size_t len, done;
};

int ddp__pass_begin(struct ddp__pass *p, struct ddp__wire *w, int tag, int root,
                    void *data, size_t len);
int ddp__pass_poll(struct ddp__pass *p); /* 1: done; 0: not yet */
void ddp__pass_end(struct ddp__pass *p);

/* ---- something small of every rank ----------------------------------------
 */

/* An all-gather of blocks of different length. */
struct ddp__gather {
    struct ddp__messages m;
    char *data; /* the blocks of all ranks; owned */
    size_t *at; /* by rank: its first byte; [count]: the end; owned */
};

/* Prepare for len(arg, rank) bytes of each rank.  Then write this rank's block
 * to ddp__gather_of(), and begin. */
int ddp__gather_new(struct ddp__gather *g, struct ddp__wire *w, int tag,
                    size_t (*len)(const void *arg, int rank), const void *arg);
void *ddp__gather_of(const struct ddp__gather *g, int rank);
int ddp__gather_begin(struct ddp__gather *g);
int ddp__gather_poll(struct ddp__gather *g); /* 1: done; 0: not yet */
void ddp__gather_end(struct ddp__gather *g);

#endif
