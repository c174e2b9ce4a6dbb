/* undo.c - contents that buffers had, given back to them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/undo.h"

/* More than a handle ever has versions. */
#define VERSIONS (UINT64_C(1) << 40)

static _Atomic uint64_t version;

uint64_t ddp__undo_version(void)
{
    return atomic_load_explicit(&version, memory_order_relaxed);
}

struct undo {
    struct ddp__handle *b, *kept; /* not owned */
    void (*done)(int rc, void *arg);
    void *arg;
};

/* Both are open. */
static void copy_back(void *arg)
{
    struct undo *u = arg;
    void *to = ddp__handle_memory(u->b, DDP__MAIN_MEMORY);
    void *from = ddp__handle_memory(u->kept, DDP__MAIN_MEMORY);
    int rc = to && from ? 0 : ddp__buffer_fail(u->b->size);

    if (rc == 0)
        memcpy(to, from, u->b->size);
    atomic_fetch_add(&version, VERSIONS);
    ddp__handle_release(u->b, DDP__MAIN_MEMORY);
    ddp__handle_release(u->kept, DDP__MAIN_MEMORY);
    u->done(rc, u->arg);
    free(u);
}

/* Out of the order of submission: all later tasks wait for the caller. */
static void open_target(void *arg)
{
    struct undo *u = arg;

    starpu_data_acquire_on_node_cb_sequential_consistency(
        u->b->h, DDP__MAIN_MEMORY, STARPU_W, copy_back, u, 0);
}

void ddp__handle_undo(struct ddp__handle *b, struct ddp__handle *kept,
                      void (*done)(int rc, void *arg), void *arg)
{
    struct undo *u = malloc(sizeof(*u));

    if (!u) {
        done(ddp__fail(DDP_ENOMEM, "out of memory to undo an update"), arg);
        return;
    }
    *u = (struct undo){b, kept, done, arg};
    starpu_data_acquire_on_node_cb_sequential_consistency(
        kept->h, DDP__MAIN_MEMORY, STARPU_R, open_target, u, 0);
}
