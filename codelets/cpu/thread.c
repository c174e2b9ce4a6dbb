/* thread.c - scratch memory of a thread that runs kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "cpu.h"
#include "thread.h"

struct scratch {
    void *p; /* owned */
    size_t size;
};

/* Address space of a thread that needs large pages: pages of less would be
 * touched again each time that a larger layer comes. */
enum { LARGE_PAGE = 2 << 20, LARGE_SPACE = 32 << 20 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_rc;
static __thread struct scratch *mine; /* owned by the key */

static void scratch_free(void *arg)
{
    struct scratch *s = arg;

    free(s->p);
    free(s);
}

static void key_new(void)
{
    key_rc = pthread_key_create(&key, scratch_free);
}

static struct scratch *scratch_new(void)
{
    struct scratch *s;

    pthread_once(&once, key_new);
    if (key_rc || !(s = calloc(1, sizeof(*s))))
        return NULL;
    if (pthread_setspecific(key, s)) {
        free(s);
        return NULL;
    }
    return s;
}

void ddp__large_later(void *p, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (size >= LARGE_PAGE)
        madvise(p, size, MADV_HUGEPAGE); /* may be refused */
#else
    (void)p;
    (void)size;
#endif
}

void *ddp__large_alloc(size_t size, bool later)
{
    size_t page = size < LARGE_PAGE ? 64 : LARGE_PAGE;
    size_t whole = (size + page - 1) / page * page;
    void *p;

    if (whole < size || !(p = aligned_alloc(page, whole ? whole : page)))
        return NULL;
    if (!later)
        ddp__large_later(p, whole);
    return p;
}

size_t ddp__scratch_size(size_t size)
{
    return size + size / 8;
}

void *ddp__scratch(size_t size)
{
    if (!mine && !(mine = scratch_new()))
        goto fail;
    if (size > mine->size || !mine->p) {
        free(mine->p);
        mine->size = 0;
        size = ddp__scratch_size(size);
        if (size >= LARGE_PAGE && size < LARGE_SPACE)
            size = LARGE_SPACE;
        if (!(mine->p = ddp__large_alloc(size, false)))
            goto fail;
        mine->size = size;
    }
    return mine->p;

fail:
    ddp__fail(DDP_ENOMEM, "out of memory for %zu bytes of scratch", size);
    return NULL;
}

void ddp__scratch_free(void)
{
    if (!mine)
        return;
    pthread_setspecific(key, NULL);
    scratch_free(mine);
    mine = NULL;
}
