/* pack.h - weights in the layout a primitive needs, kept while they are valid
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PACK_H
#define DDP_PACK_H

#include <pthread.h>

#include "cpu/onednn/onednn.h"
#include "shared_pack.h"

/* One packed copy of a layer's weights. */
struct ddp__pack {
    struct ddp__pack *next;
    uint64_t id, version;
    const struct ddp__dnn *layout; /* not owned: whose packed form; or NULL */
    int users;                     /* kernels that read it, or make it, now */
    int begun, done;               /* parts that have been made */
    int rc;                        /* 0, or why it could not be made */
    bool valid;                    /* or on the way to it */
    size_t size;
    void *data; /* owned */
};

/* The copies of one call: one, unless kernels with different weights (or
 * layouts) overlap. */
struct ddp__packs {
    pthread_mutex_t lock;
    pthread_cond_t made;
    struct ddp__pack *head; /* owned */
    bool calm;              /* they need no large pages at first */
    /* A copy that other processes have, too; NULL: none.  Not owned. */
    struct ddp__shared_pack *shared;
    struct ddp__pack common; /* that one's data */
};

void ddp__packs_init(struct ddp__packs *p);
void ddp__packs_free(struct ddp__packs *p);

/* Copies in this layout (NULL: in the one that the call has) are in s. */
void ddp__packs_share(struct ddp__packs *p, struct ddp__shared_pack *s,
                      const struct ddp__dnn *layout);

/* What copies a call's weights: parts times, each a part of its own. */
struct ddp__packing {
    int (*fill)(const void *arg, void *to, int part);
    const void *arg;
    int parts;
    size_t size;  /* bytes of the copy */
    uint64_t key; /* of contents that other processes have; 0: unknown */
};

/* The copy for handle id at this version in d's layout (NULL: in the one that
 * the call has), made if need be: whoever comes while it is being made takes
 * a share of the parts.  id 0: weights of unknown origin, always made.  Give
 * it back with ddp__pack_put(). */
int ddp__pack_get(struct ddp__packs *p, struct ddp__pack **out,
                  const struct ddp__dnn *d, uint64_t id, uint64_t version,
                  const struct ddp__packing *how);
void ddp__pack_put(struct ddp__packs *p, struct ddp__pack *k);

#endif
