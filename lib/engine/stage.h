/* stage.h - copies in main memory of parts of a GPU's vector, for messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STAGE_H
#define DDP_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "ops_backend.h"

/* Where the vector is, and the memory for copies. */
struct ddp__stage {
    const struct ddp__space *space; /* NULL: in main memory */
    int device;
    char *room; /* in main memory, for all parts in flight; not owned */
};

/* A part, copied. */
struct ddp__staged {
    void **piece; /* by lane, as the vector's; owned */
    void *sum;    /* can be the piece of lane 0 */
    void *ticket; /* of the copies in flight; NULL: none */
};

/* In bytes: the place of a part in the vector, and the range to copy. */
struct ddp__cut {
    size_t begin, n, from, to; /* from, to: within the part */
};

/* Begin to copy a part of each piece (by lane; NULL: none) to main memory at
 * `room`. */
int ddp__stage_fetch(const struct ddp__stage *s, struct ddp__staged *p,
                     void *const *piece, int lanes, const struct ddp__cut *c,
                     char *room);

/* Begin to copy the part's sum into the vector's sum. */
int ddp__stage_store(const struct ddp__stage *s, struct ddp__staged *p,
                     void *sum, const struct ddp__cut *c);

/* 1: the copies are done; 0: not yet. */
int ddp__stage_poll(const struct ddp__stage *s, struct ddp__staged *p);

/* Free the part; waits for copies in flight. */
void ddp__stage_end(const struct ddp__stage *s, struct ddp__staged *p);

#endif
