/* direct.c - gradients of GPUs between ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/context.h"
#include "runtime/direct.h"

/* What the user says of the MPI, or what it says itself. */
static bool carries_gpus(const struct ddp__wire *w)
{
    const char *text = getenv("DDP_MPI_CUDA");

    return text && *text ? atoi(text) != 0 : w->gpus != 0;
}

int ddp__direct_home(const ddp_t *ddp, int owner)
{
    const struct ddp__device *a = ddp->accelerator;
    int id[STARPU_NMAXWORKERS], n;

    if (!a || ddp->devices.hybrid)
        return DDP__MAIN_MEMORY;
    n = starpu_worker_get_ids_by_type(a->workers, id, STARPU_NMAXWORKERS);
    if (n <= 0)
        return DDP__MAIN_MEMORY;
    return (int)starpu_worker_get_memory_node((unsigned)id[owner % n]);
}

struct fetch {
    struct ddp__handle *h;
    int node;
    struct ddp__task_group *group;
};

static void fetched(void *arg)
{
    struct fetch *f = arg;
    struct ddp__task_group *g = f->group;

    ddp__handle_release(f->h, f->node);
    free(f);
    ddp__task_group_add(g, -1);
}

void ddp__direct_fetch(struct ddp__handle *h, int node,
                       struct ddp__task_group *g)
{
    struct fetch *f = malloc(sizeof(*f));

    if (!f)
        return; /* its task asks */
    *f = (struct fetch){h, node, g};
    ddp__task_group_add(g, 1);
    ddp__handle_acquire(h, node, true, false, fetched, f);
}

void ddp__direct_to(const ddp_t *ddp, int node, struct ddp__direct *d)
{
    *d = (struct ddp__direct){.node = DDP__MAIN_MEMORY};
    if (node == DDP__MAIN_MEMORY ||
        !(d->space = ddp->accelerator->backends[0]->space))
        return;
    d->messages = carries_gpus(&ddp->net.wire);
    d->node = node;
    d->device = starpu_memory_node_get_devid((unsigned)node);
}
