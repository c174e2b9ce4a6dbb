/* missing.c - what stands in for memory that cannot be allocated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU asks for a task's memory again and again until it gets some, even if
 * nothing will ever free any.  So it gets an address that stands in for memory,
 * and a task that finds it among its buffers fails.  On a machine without
 * devices nobody follows that address.  With devices, StarPU may copy to and
 * from it, so there it is memory, of the size of the largest buffer, whose
 * contents nobody uses.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/missing.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char nothing[64];
static char *memory = nothing; /* owned, unless it is `nothing` */
static size_t reserved;
static atomic_int taken; /* of memory, which then does not change */

bool ddp__missing_reserve(size_t size)
{
    bool enough;
    char *p;

    pthread_mutex_lock(&lock);
    if (size > reserved && taken == 0 && (p = malloc(size))) {
        if (memory != nothing)
            free(memory);
        memory = p;
        reserved = size;
    }
    enough = size <= reserved;
    pthread_mutex_unlock(&lock);
    return enough;
}

void *ddp__missing_take(size_t size, bool devices)
{
    void *p = NULL;

    pthread_mutex_lock(&lock);
    if (!devices || size <= reserved) {
        taken++;
        p = memory;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

bool ddp__missing_give(const void *p)
{
    if (!ddp__is_missing(p))
        return false;
    taken--;
    return true;
}

bool ddp__is_missing(const void *p)
{
    return ddp__missing_any() && p == memory;
}

bool ddp__missing_any(void)
{
    return taken > 0;
}
