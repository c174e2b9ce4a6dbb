/* cache.c - decoded images in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is in is kept: an epoch needs every image once, so that any that made
 * room for another one would be missed as often.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "ddp.h"
#include "image/cache.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_size_t limit; /* 0: there is no cache */
static struct ddp_image_cache_stats stats;

int ddp_image_cache_configure(int64_t bytes)
{
    if (bytes < 0)
        return ddp__fail(DDP_EINVAL,
                         "a cache of %lld bytes, expected 1 or more, or 0: "
                         "none",
                         (long long)bytes);
    atomic_store(&limit, (size_t)bytes);
    return 0;
}

void ddp_image_cache_stats(struct ddp_image_cache_stats *s)
{
    pthread_mutex_lock(&lock);
    *s = stats;
    pthread_mutex_unlock(&lock);
}

static size_t bytes_of(const struct ddp__decoded *d)
{
    return (size_t)d->w * (size_t)d->h * 3 + sizeof(*d);
}

size_t ddp__cache_room(void)
{
    size_t most = atomic_load(&limit), used;

    if (!most)
        return 0;
    pthread_mutex_lock(&lock);
    used = (size_t)stats.bytes;
    pthread_mutex_unlock(&lock);
    return used < most ? most - used : 0;
}

/* With the lock: without memory for the list, nothing is kept. */
static bool has_list(struct ddp__kept *k, int64_t count)
{
    if (!k->image && (k->image = calloc((size_t)count, sizeof(*k->image))))
        k->count = count;
    return k->image;
}

const struct ddp__decoded *ddp__cache_find(struct ddp__kept *k, int64_t index,
                                           int64_t count)
{
    const struct ddp__decoded *d = NULL;

    if (!atomic_load(&limit))
        return NULL;
    pthread_mutex_lock(&lock);
    if (has_list(k, count))
        d = k->image[index];
    if (d)
        stats.hits++;
    else
        stats.misses++;
    pthread_mutex_unlock(&lock);
    return d;
}

bool ddp__cache_has(const struct ddp__kept *k, int64_t index)
{
    bool has;

    if (!atomic_load(&limit))
        return false;
    pthread_mutex_lock(&lock);
    has = index < k->count && k->image[index];
    pthread_mutex_unlock(&lock);
    return has;
}

const struct ddp__decoded *ddp__cache_keep(struct ddp__kept *k, int64_t index,
                                           const struct ddp__decoded *d)
{
    struct ddp__decoded *kept = malloc(sizeof(*kept));
    size_t most = atomic_load(&limit), size = bytes_of(d);
    bool good;

    pthread_mutex_lock(&lock);
    good = kept && index < k->count && !k->image[index] && size <= most &&
           (size_t)stats.bytes <= most - size;
    if (good) {
        *kept = *d;
        k->image[index] = kept;
        stats.bytes += (int64_t)size;
        stats.images++;
    }
    pthread_mutex_unlock(&lock);
    if (good)
        return kept;
    free(kept);
    free(d->rgb);
    return NULL;
}

void ddp__cache_count(bool hit, int64_t kept)
{
    pthread_mutex_lock(&lock);
    stats.hits += hit;
    stats.misses += !hit && !kept;
    stats.images += kept > 0;
    stats.bytes += kept;
    pthread_mutex_unlock(&lock);
}

void ddp__cache_drop(struct ddp__kept *k)
{
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < k->count; i++)
        if (k->image[i]) {
            stats.bytes -= (int64_t)bytes_of(k->image[i]);
            stats.images--;
            free(k->image[i]->rgb);
            free(k->image[i]);
        }
    pthread_mutex_unlock(&lock);
    free(k->image);
    *k = (struct ddp__kept){0};
}
