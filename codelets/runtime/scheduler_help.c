/* scheduler_help.c - workers that have nothing to do help with a sub-batch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/scheduler_help.h"

/* A task that goes to another core leaves its data in the caches of the first,
 * and to wake a worker takes as long as a small task. */
static const double long_task = 2e-4;

/* Whether the tasks of u that are done were long. */
static bool is_long(const struct ddp__sched_sub *u)
{
    int done = u->tasks - u->pending;

    return done > 0 && u->ran >= long_task * done;
}

/* The task that a worker may take of u, whose owner shall have one left if it
 * comes for it. */
static struct starpu_task *spare_task(const struct ddp__sched *s,
                                      const struct ddp__sched_sub *u, int id)
{
    const struct queue *q = &u->ready;

    if (u->owner < 0 || u->owner == id || !q->first || !is_in_main(id) ||
        !is_in_main(u->owner) || !is_long(u) ||
        (s->claims.by[u->owner].comes && q->first == q->last))
        return NULL;
    return queue_first(q, id);
}

struct starpu_task *ddp__help_next(struct ddp__sched *s, int id)
{
    for (struct ddp__sched_sub *u = s->claims.first; u; u = u->next) {
        struct starpu_task *t = spare_task(s, u, id);

        if (t) {
            queue_remove(&u->ready, t);
            return t;
        }
    }
    return NULL;
}

/* Call one that may take a task of u. */
static bool call_one(struct ddp__sched *s, struct ddp__sched_sub *u,
                     struct ddp__sched_calls *c)
{
    for (int i = 0; i < s->claims.workers; i++) {
        int id = s->claims.id[i];

        if (s->claims.by[id].waiting && spare_task(s, u, id))
            return ddp__sched_call(s, id, c);
    }
    return false;
}

void ddp__help_ready(struct ddp__sched *s, struct ddp__sched_sub *u,
                     struct ddp__sched_calls *c)
{
    /* even by itself: a GPU's worker may wait while its tasks run */
    bool called = ddp__sched_call(s, u->owner, c);

    if (called || starpu_worker_get_id() == u->owner)
        s->claims.by[u->owner].comes = true;
    else
        call_one(s, u, c);
}

void ddp__help_taken(struct ddp__sched *s, int id, struct ddp__sched_calls *c)
{
    s->claims.by[id].comes = false;
    for (struct ddp__sched_sub *u = s->claims.first; u; u = u->next)
        if (call_one(s, u, c))
            return;
}
