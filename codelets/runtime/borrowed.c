/* borrowed.c - main memory in place of device memory that cannot be allocated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step begins when the devices have room for all that it needs.  If another
 * program takes that room later, StarPU frees what nobody uses and asks again,
 * for ever if there is no such thing.  So after a while without any progress it
 * gets main memory that the device can use.  A task that finds such a buffer
 * fails, and with it its step: it would run at a hundredth of its speed.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/borrowed.h"
#include "runtime/task_group.h"

#define PATIENCE 10 /* seconds without a task that ended */

struct borrowed {
    struct borrowed *next;
    void *p;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct borrowed *list;
static atomic_int count;    /* of the list */
static atomic_bool failing; /* an allocation failed since the last progress */
static double since;        /* the first one that did */
static const struct ddp__backend *source; /* NULL: there are no devices */

void ddp__borrowed_from(const struct ddp__backend *b)
{
    source = b && b->map ? b : NULL;
}

void ddp__borrowed_progress(void)
{
    if (atomic_load_explicit(&failing, memory_order_relaxed))
        atomic_store_explicit(&failing, false, memory_order_relaxed);
}

/* Whether nothing has ended for so long that nothing will. */
static bool is_hopeless(void)
{
    if (!atomic_exchange(&failing, true))
        since = ddp__now();
    return ddp__now() - since > PATIENCE;
}

void *ddp__borrowed_take(size_t size)
{
    struct borrowed *b = NULL;
    void *p = NULL;

    pthread_mutex_lock(&lock);
    if (source && is_hopeless() && (b = malloc(sizeof(*b)))) {
        if ((p = source->map(size))) {
            *b = (struct borrowed){list, p};
            list = b;
            count++;
        } else {
            free(b);
        }
    }
    pthread_mutex_unlock(&lock);
    return p;
}

/* The link to p's entry, or to NULL. */
static struct borrowed **find(const void *p)
{
    struct borrowed **at = &list;

    while (*at && (*at)->p != p)
        at = &(*at)->next;
    return at;
}

bool ddp__is_borrowed(const void *p)
{
    bool found;

    if (count == 0)
        return false;
    pthread_mutex_lock(&lock);
    found = *find(p) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

bool ddp__borrowed_give(void *p)
{
    struct borrowed **at, *b;

    if (count == 0)
        return false;
    pthread_mutex_lock(&lock);
    at = find(p);
    if ((b = *at)) {
        *at = b->next;
        count--;
    }
    pthread_mutex_unlock(&lock);
    if (b)
        source->unmap(p);
    free(b);
    return b != NULL;
}
