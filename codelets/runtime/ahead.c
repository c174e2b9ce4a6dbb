/* ahead.c - transfers that begin before a worker asks for them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU has a worker wait for the data of the task that it took, while other
 * tasks could run.
 */
#include "config.h"

#include "runtime/ahead.h"

bool ddp__ahead_used(int id)
{
    return starpu_get_prefetch_flag() &&
           starpu_worker_get_memory_node((unsigned)id) != STARPU_MAIN_RAM;
}

void ddp__ahead_task(struct starpu_task *t, int id)
{
    if (ddp__ahead_used(id) && !t->prefetched)
        starpu_prefetch_task_input_for(t, (unsigned)id);
}

bool ddp__ahead_has(struct starpu_task *t, unsigned node)
{
    int there, valid = 1, coming;

    for (unsigned i = 0; valid && i < STARPU_TASK_GET_NBUFFERS(t); i++)
        if (STARPU_TASK_GET_MODE(t, i) & STARPU_R)
            starpu_data_query_status(STARPU_TASK_GET_HANDLE(t, i), (int)node,
                                     &there, &valid, &coming);
    return valid;
}

bool ddp__ahead_arrived(struct starpu_task *t, unsigned node)
{
    return !t->prefetched || ddp__ahead_has(t, node);
}

/* ---- input -------------------------------------------------------------- */

int ddp__ahead_filled(struct ddp__claims *c, const struct ddp__sched_tag *tag,
                      starpu_data_handle_t input)
{
    for (struct ddp__sched_sub *u = c->first; u; u = u->next)
        if (u->step == tag->step && u->lane == tag->lane && u->sub == tag->sub)
            u->input = input;
    return ddp__claims_last(c, tag->lane);
}

/* The first sub-batch, of the lanes that a worker had last, that nobody has
 * claimed and whose input is in main memory; NULL: there is none, or one is on
 * its way already. */
static struct ddp__sched_sub *expected_sub(const struct ddp__claims *c, int id)
{
    struct ddp__sched_sub *first = NULL;

    for (struct ddp__sched_sub *u = c->first; u; u = u->next) {
        if (u->owner >= 0 || ddp__claims_last(c, u->lane) != id)
            continue;
        if (u->ahead)
            return NULL;
        if (!first && u->input)
            first = u;
    }
    return first;
}

struct ddp__sched_sub *ddp__ahead_expected(struct ddp__claims *c, int id)
{
    struct ddp__sched_sub *u;

    if (!ddp__ahead_used(id) || !(u = expected_sub(c, id)))
        return NULL;
    u->ahead = u->sending = true;
    return u;
}

/* StarPU prefetches what a task reads, or data that nothing submitted so far
 * frees: so this looks like a task that reads it.  Requests keep its address.
 */
void ddp__ahead_input(starpu_data_handle_t input, int id)
{
    static struct starpu_codelet reader = {
        .where = STARPU_CPU, .nbuffers = 1, .modes = {STARPU_R}};
    static _Thread_local struct starpu_task task;

    starpu_task_init(&task);
    task.cl = &reader;
    task.handles[0] = input;
    starpu_idle_prefetch_task_input_for(&task, (unsigned)id);
}
