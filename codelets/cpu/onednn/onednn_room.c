/* onednn_room.c - memory for oneDNN, which ends the process without it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * oneDNN allocates by C++'s operator new, whose exception nothing catches on
 * its way through C.  Before it throws, operator new calls a handler and tries
 * again: ours gives a reserve back to the system, so that what has begun can
 * end.  The next use of oneDNN has to find a new reserve, or fails.
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/error.h"
#include "onednn_room.h"

enum {
    RESERVE = 4 << 20,
    ROOM = 8 << 20, /* for one primitive; most take less than 1 MiB */
    LEFT = 32 << 20 /* without it StarPU aborts, see extents.c */
};

typedef void handler(void);

static handler *(*set_handler)(handler *h); /* NULL: there is none to set */
static _Atomic(void *) reserve;
static __thread bool waited; /* for memory that another thread gave back */

/* With neither, operator new throws as it would without us. */
static void give_reserve(void)
{
    void *r = atomic_exchange(&reserve, NULL);

    if (r) {
        munmap(r, RESERVE);
    } else if (!waited) {
        waited = true;
        sched_yield();
    } else {
        set_handler(NULL);
    }
}

/* A program in C++ may have a handler of its own, which is left alone.  The
 * name is std::set_new_handler()'s, by the ABI that all compilers share. */
static void install_handler(void)
{
    handler *before;

    *(void **)&set_handler = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
    if (!set_handler || !(before = set_handler(give_reserve)))
        return;
    set_handler(before);
    set_handler = NULL;
}

int ddp__dnn_room(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *r, *none = NULL;

    pthread_once(&once, install_handler);
    waited = false;
    if (!set_handler || atomic_load_explicit(&reserve, memory_order_relaxed))
        return 0;
    /* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
    r = mmap(NULL, RESERVE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (r == MAP_FAILED)
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for oneDNN: it needs a "
                         "reserve of %d bytes",
                         RESERVE);
    if (!atomic_compare_exchange_strong(&reserve, &none, r))
        munmap(r, RESERVE);
    set_handler(give_reserve);
    return 0;
}

/* oneDNN 2.6 does not handle a failed allocation: its code generator writes to
 * the memory that it did not get, and its exceptions end the process.  So there
 * must be more than all threads that now make a primitive will take. */
static atomic_int makers;

int ddp__dnn_maker_begin(void)
{
    size_t room;
    void *p;
    int rc = ddp__dnn_room();

    if (rc < 0)
        return rc;
    room = (size_t)(atomic_fetch_add(&makers, 1) + 1) * ROOM + LEFT;
    /* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
    p = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) {
        munmap(p, room);
        return 0;
    }
    ddp__dnn_maker_end();
    return ddp__fail(DDP_ENOMEM,
                     "out of memory for oneDNN: it takes up to %zu bytes",
                     room - LEFT);
}

void ddp__dnn_maker_end(void)
{
    atomic_fetch_sub(&makers, 1);
}
