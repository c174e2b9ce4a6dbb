/* stage.h - parts of a vector of a GPU in main memory, while they travel
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STAGE_H
#define DDP_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "ops.h"

/* Where a vector is. */
struct ddp__stage {
    const struct ddp__space *space; /* NULL: in main memory */
    int device;
    char *room; /* in main memory, for the parts under way; not owned */
};

/* A part of it there. */
struct ddp__staged {
    void **piece; /* by lane, as the vector's; owned */
    void *sum;    /* maybe that of lane 0 */
    void *ticket; /* of the last copies; NULL: none */
};

/* In bytes: where a part is in the vector, and what of it is copied. */
struct ddp__cut {
    size_t begin, n, from, to; /* from, to: within the part */
};

/* A part of the pieces (by lane; NULL: none) of a vector: have it copied into
 * the memory at `room`. */
int ddp__stage_fetch(const struct ddp__stage *s, struct ddp__staged *p,
                     void *const *piece, int lanes, const struct ddp__cut *c,
                     char *room);

/* Its sum into that of the vector. */
int ddp__stage_store(const struct ddp__stage *s, struct ddp__staged *p,
                     void *sum, const struct ddp__cut *c);

/* 1: copied; 0: not yet. */
int ddp__stage_poll(const struct ddp__stage *s, struct ddp__staged *p);

/* Afterwards or, with a wait, in place of it. */
void ddp__stage_end(const struct ddp__stage *s, struct ddp__staged *p);

#endif
