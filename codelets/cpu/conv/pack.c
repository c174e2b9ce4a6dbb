/* pack.c - weights in the layout a primitive needs, kept while they are valid
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Why copies are kept: a primitive reads weights in blocks of channels, and a
 * step uses the same weights once for each sub-batch.  Reordering them for each
 * would read and write all weights as often.
 *
 * When a copy is valid: if it has the layout that is asked for, and the
 * handle's contents are those it was made from.  The runtime gives contents a
 * pair (id, version) that no others ever have, so nobody has to tell this file
 * that an optimizer ran.  Weights of unknown origin, id 0, never match.
 *
 * Why a copy has users: kernels of several workers read one call's weights at
 * the same time, and may do so at two versions when steps overlap.  A copy that
 * anyone reads is never overwritten: who needs another version takes an unused
 * copy or adds one, so a list grows to the number of versions in use at once,
 * mostly one, and memory is reused after that.
 *
 * Why copies have parts: after an update all workers arrive at the first layer
 * together, and each would wait for the one that packs.  Whoever comes takes
 * the next part instead, outside the lock; `begun` hands parts out, `done`
 * counts finished ones, and all wait for the last.  A part that failed leaves
 * its code in rc, and the copy becomes invalid for everyone.
 *
 * Why calm copies, made once and read once for many samples, have small pages
 * at first: to clear a large one may take milliseconds, where a host takes free
 * memory back from its virtual machine (docs/performance.md), and workers that
 * meet one at the same time all do so.  The kernel replaces small ones by large
 * ones in a run of minutes.  Copies of training and of single samples are read
 * too often for that: see plan.c.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "cpu/cpu.h"
#include "cpu/thread.h"
#include "pack.h"

void ddp__packs_init(struct ddp__packs *p)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->made, NULL);
    p->head = NULL;
    p->calm = false;
    p->shared = NULL;
    p->common = (struct ddp__pack){.valid = true};
}

/* Copies that nobody reads. */
static void free_unused(struct ddp__packs *p)
{
    struct ddp__pack **at = &p->head, *k;

    while ((k = *at)) {
        if (k->users) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        free(k->data);
        free(k);
    }
}

void ddp__packs_free(struct ddp__packs *p)
{
    free_unused(p);
    pthread_cond_destroy(&p->made);
    pthread_mutex_destroy(&p->lock);
}

void ddp__packs_share(struct ddp__packs *p, struct ddp__shared_pack *s,
                      const struct ddp__dnn *layout)
{
    p->shared = s;
    p->common.layout = layout;
    p->common.data = ddp__shared_pack_data(s);
}

static bool pack_is_current(const struct ddp__pack *k, const struct ddp__dnn *d,
                            uint64_t id, uint64_t version)
{
    return k->valid && id && k->id == id && k->version == version &&
           (!d || ddp__dnn_same_packed(k->layout, d));
}

static struct ddp__pack *find_pack(struct ddp__packs *p,
                                   const struct ddp__dnn *d, uint64_t id,
                                   uint64_t version)
{
    struct ddp__pack *k;

    for (k = p->head; k; k = k->next)
        if (pack_is_current(k, d, id, version))
            return k;
    return NULL;
}

/* One that nobody reads, with room for size bytes. */
static struct ddp__pack *unused_pack(struct ddp__packs *p, size_t size)
{
    struct ddp__pack *k;

    for (k = p->head; k && k->users; k = k->next)
        ;
    if (!k) {
        if (!(k = calloc(1, sizeof(*k))))
            return NULL;
        k->next = p->head;
        p->head = k;
    }
    k->valid = false;
    if (k->size < size) {
        free(k->data);
        k->size = 0;
        if (!(k->data = ddp__large_alloc(size, p->calm)))
            return NULL;
        k->size = size;
    }
    return k;
}

/* Make parts until none is left, then wait for those of others. */
static int fill_parts(struct ddp__packs *p, struct ddp__pack *k,
                      const struct ddp__packing *how)
{
    int rc = 0;

    while (k->begun < how->parts) {
        int part = k->begun++;

        pthread_mutex_unlock(&p->lock);
        rc = how->fill(how->arg, k->data, part);
        pthread_mutex_lock(&p->lock);
        if (rc < 0)
            k->rc = rc;
        if (++k->done < how->parts)
            continue;
        if (p->calm)
            ddp__large_later(k->data, k->size);
        pthread_cond_broadcast(&p->made);
    }
    while (k->done < how->parts)
        pthread_cond_wait(&p->made, &p->lock);
    return rc == 0 && k->rc < 0
               ? ddp__fail(k->rc, "another worker could not pack the weights")
               : k->rc;
}

/* Copies of our own, from before the first update, are needed no more. */
static bool get_shared(struct ddp__packs *p, const struct ddp__dnn *d,
                       const struct ddp__packing *how)
{
    if (!p->shared || !how->key ||
        (d && !ddp__dnn_same_packed(p->common.layout, d)) ||
        !ddp__shared_pack_get(p->shared, how))
        return false;
    pthread_mutex_lock(&p->lock);
    free_unused(p);
    pthread_mutex_unlock(&p->lock);
    return true;
}

/* All under the lock but the packing itself, see fill_parts().  The copy has a
 * user before it is filled, so that nobody else takes it as unused. */
int ddp__pack_get(struct ddp__packs *p, struct ddp__pack **out,
                  const struct ddp__dnn *d, uint64_t id, uint64_t version,
                  const struct ddp__packing *how)
{
    struct ddp__pack *k;
    int rc = 0;

    if (get_shared(p, d, how)) {
        *out = &p->common;
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    if (!(k = find_pack(p, d, id, version)) &&
        (k = unused_pack(p, how->size))) {
        k->id = id;
        k->version = version;
        k->layout = d;
        k->begun = k->done = k->rc = 0;
        k->valid = true;
    }
    if (!k) {
        rc = ddp__fail(DDP_ENOMEM,
                       "out of memory for %zu bytes of packed weights",
                       how->size);
    } else {
        k->users++;
        if ((rc = fill_parts(p, k, how)) < 0) {
            k->valid = false;
            k->users--;
        }
    }
    pthread_mutex_unlock(&p->lock);
    *out = k;
    return rc;
}

void ddp__pack_put(struct ddp__packs *p, struct ddp__pack *k)
{
    if (k == &p->common) {
        ddp__shared_pack_put(p->shared);
        return;
    }
    pthread_mutex_lock(&p->lock);
    k->users--;
    pthread_mutex_unlock(&p->lock);
}
