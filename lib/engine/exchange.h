/* exchange.h - a sum over ranks, as messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An exchange never waits: poll it until it is done.  All ranks make the same
 * ones; those under way at a time have different tags.
 */
#ifndef DDP_EXCHANGE_H
#define DDP_EXCHANGE_H

#include <stdbool.h>

#include "engine/lanes.h"
#include "ops.h"
#include "wire.h"

struct ddp__messages {
    struct ddp__wire *wire; /* not owned */
    int tag, count;
    uintptr_t *request; /* owned */
};

/* ---- the sum of a vector --------------------------------------------------
 */

/* to[i] becomes to[i] and from[i] together, for n elements. */
typedef void ddp__add_f(void *to, const void *from, size_t n);
ddp__add_f ddp__add_f32;  /* as MERGE does */
ddp__add_f ddp__add_bf16; /* of f32, rounded to bf16 */
ddp__add_f ddp__add_f64;  /* as MERGE_STATS does */

/* Every rank has pieces, which are sums of some lanes, and gets the sum of all
 * of them: first a slice of it, of which it gets the pieces of the others and
 * makes the additions; then the slices of the others.  Or only the first half
 * of that, or the second, whose slice is where the sum will be. */
enum ddp__exchange_kind {
    DDP__ALL_REDUCE,
    DDP__REDUCE_SCATTER,
    DDP__ALL_GATHER
};

/* Where a rank's slice of n elements begins; that of the last one ends at n. */
size_t ddp__slice_begin(size_t n, int ranks, int rank);

struct ddp__exchange {
    struct ddp__messages m;
    enum ddp__exchange_kind kind;
    struct ddp__split split;
    /* By lane: the pieces of this rank, which the additions change; NULL: the
     * piece of another rank, or none.  Not owned, like sum. */
    void *const *piece;
    void *sum;         /* that of lane 0 if this rank has it; else any */
    size_t begin, end; /* the elements that this exchange is about */
    size_t size;       /* of an element */
    bool half;         /* elements are f32 that bf16 has, and sent as such */
    ddp__add_f *add;
    /* Pieces, sum and room are in the memory of a device, and of f32, not half;
     * NULL: in main memory. */
    const struct ddp__space *space;
    int device;
    char *room;         /* there, for others' pieces; NULL: it makes some */
    char *own_room;     /* owned, like what follows */
    bool *first;        /* by lane: has a piece */
    char **block;       /* by lane: this rank's slice of the piece */
    uint16_t *out, *in; /* half: what is sent and received; owned */
    size_t outs;        /* elements in out so far */
    bool added, over;
};

/* Set up (wire, split, tag and vectors) and send the first messages.
 * DDP_ENOMEM, or the module's failure. */
int ddp__exchange_begin(struct ddp__exchange *x, struct ddp__wire *w,
                        const struct ddp__split *s, int tag);
int ddp__exchange_poll(struct ddp__exchange *x); /* 1: done; 0: not yet */
void ddp__exchange_end(struct ddp__exchange *x);

/* ---- a vector of one rank --------------------------------------------------
 */

/* Every rank gets what the root has. */
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

/* Every rank gets what each has. */
struct ddp__gather {
    struct ddp__messages m;
    char *data; /* of all ranks, one after another; owned */
    size_t *at; /* by rank: where it begins; [count]: the end; owned */
};

/* Set it up for len(arg, rank) bytes of each rank; ddp__gather_of() is then
 * where this rank puts what it has. */
int ddp__gather_new(struct ddp__gather *g, struct ddp__wire *w, int tag,
                    size_t (*len)(const void *arg, int rank), const void *arg);
void *ddp__gather_of(const struct ddp__gather *g, int rank);
int ddp__gather_begin(struct ddp__gather *g);
int ddp__gather_poll(struct ddp__gather *g); /* 1: done; 0: not yet */
void ddp__gather_end(struct ddp__gather *g);

#endif
