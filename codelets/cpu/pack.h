/* pack.h - weights in the layout a primitive wants, kept while they are valid
 */
#ifndef DDP_PACK_H
#define DDP_PACK_H

#include <pthread.h>

#include "onednn.h"

/* One packed copy of a layer's weights. */
struct ddp__pack {
    struct ddp__pack *next;
    uint64_t id, version;
    const struct ddp__dnn *layout; /* not owned: whose packed form; or NULL */
    int users;                     /* kernels that read it now */
    bool valid;
    size_t size;
    void *data; /* owned */
};

/* The copies of one call: one, unless kernels with different weights (or
 * layouts) overlap. */
struct ddp__packs {
    pthread_mutex_t lock;
    struct ddp__pack *head; /* owned */
};

void ddp__packs_init(struct ddp__packs *p);
void ddp__packs_free(struct ddp__packs *p);

/* The copy, of size bytes, for handle id at this version in d's layout (NULL:
 * in the one that the call has), made by fill(arg, to) if need be, by whoever
 * comes first; others wait for it.  id 0: weights of unknown origin, always
 * made.  Give it back with ddp__pack_put(). */
int ddp__pack_get(struct ddp__packs *p, struct ddp__pack **out, size_t size,
                  const struct ddp__dnn *d, uint64_t id, uint64_t version,
                  int (*fill)(const void *arg, void *to), const void *arg);
void ddp__pack_put(struct ddp__packs *p, struct ddp__pack *k);

#endif
