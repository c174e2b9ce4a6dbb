/* owners.c - the workers that lanes, merges and updates belong to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/ahead.h"
#include "runtime/owners.h"
#include "runtime/scheduler.h"
#include "runtime/task_queue.h"

/* The workers that can run t, of accelerators or of the CPU; how many. */
static int list_kind(const struct ddp__claims *c, struct starpu_task *t,
                     bool accelerators, int *id)
{
    int n = 0;

    for (int i = 0; i < c->workers; i++) {
        int w = c->id[i];

        if (can_run(w, t) &&
            (starpu_worker_get_type(w) != STARPU_CPU_WORKER) == accelerators)
            id[n++] = w;
    }
    return n;
}

/* Where GPUs and CPU workers train together those of GPUs, whose memory is
 * faster. */
static int list_able(const struct ddp__claims *c, struct starpu_task *t,
                     int *id)
{
    int n = list_kind(c, t, true, id);

    return n ? n : list_kind(c, t, false, id);
}

int ddp__home_worker(const struct ddp__claims *c, struct starpu_task *t,
                     const struct ddp__sched_tag *tag)
{
    int can[STARPU_NMAXWORKERS], n = list_able(c, t, can);

    return n ? can[((tag->nth + 1) * n - 1) / tag->lanes] : -1;
}

/* The worker of an accelerator whose memory has all that t reads, or -1. */
static int data_worker(const struct ddp__claims *c, struct starpu_task *t)
{
    for (int i = 0; i < c->workers; i++) {
        unsigned node = starpu_worker_get_memory_node((unsigned)c->id[i]);

        if (node != STARPU_MAIN_RAM && can_run(c->id[i], t) &&
            ddp__ahead_has(t, node))
            return c->id[i];
    }
    return -1;
}

int ddp__owner_worker(const struct ddp__claims *c, struct starpu_task *t,
                      const struct ddp__sched_tag *tag)
{
    int can[STARPU_NMAXWORKERS], n;
    int at = tag->at_data ? data_worker(c, t) : -1;

    if (at < 0 && tag->at_lane)
        at = ddp__claims_last(c, tag->lane);
    if (at >= 0 && can_run(at, t))
        return at;
    n = list_able(c, t, can);
    return n ? can[(unsigned)tag->owner % (unsigned)n] : -1;
}
