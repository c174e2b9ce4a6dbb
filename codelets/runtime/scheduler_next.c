/* scheduler_next.c - which task a worker takes next
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/ahead.h"
#include "runtime/scheduler_help.h"
#include "runtime/scheduler_next.h"

/* Claim a sub-batch and take its first task. */
static struct starpu_task *claim_sub(struct ddp__sched *s, int id,
                                     struct ddp__sched_calls *c)
{
    struct ddp__sched_sub *u;
    struct starpu_task *t, *next, *first;

    s->claims.call = -1;
    s->claims.freed = false;
    u = ddp__claims_choose(&s->claims, id);
    if (s->claims.call >= 0)
        ddp__sched_call(s, s->claims.call, c);
    if (s->claims.freed)
        ddp__sched_call_all(s, NULL, c);
    if (!u)
        return NULL;
    ddp__claims_take(&s->claims, u, id);
    first = queue_take(&u->ready, id);
    for (t = u->ready.first; t; t = next) {
        next = t->next;
        if (can_run(id, t)) {
            /* it takes these after this call only */
            if (c->tasks < DDP__SCHED_AHEAD)
                c->task[c->tasks++] = t;
            continue;
        }
        queue_remove(&u->ready, t);
        queue_put(&s->shared, t);
        ddp__sched_call_all(s, t, c);
    }
    c->to = id;
    c->ahead = ddp__ahead_expected(&s->claims, id);
    if (s->claims.by[id].cap > 1)
        ddp__sched_call_all(s, NULL, c); /* the others may have one more now */
    return first;
}

/* A merge or update of a worker with the same memory: from another memory its
 * data, which may be on their way to the owner, would travel twice. */
static struct starpu_task *steal_update(struct ddp__sched *s, int id)
{
    unsigned node = starpu_worker_get_memory_node((unsigned)id);
    struct starpu_task *t = NULL;

    for (int i = 0; !t && i < s->claims.workers; i++)
        if (starpu_worker_get_memory_node((unsigned)s->claims.id[i]) == node)
            t = queue_take(&s->worker[s->claims.id[i]].updates, id);
    return t;
}

/* A merge or update whose data are there.  The others wait while the worker has
 * lanes, which end: the next step's wait for these.  steal_update() takes them
 * then, also those whose data have been evicted since. */
static struct starpu_task *take_update(struct ddp__sched *s, int id)
{
    unsigned node = starpu_worker_get_memory_node((unsigned)id);
    struct queue *q = &s->worker[id].updates;
    struct starpu_task *t = q->first;

    while (t && !(can_run(id, t) && ddp__ahead_arrived(t, node)))
        t = t->next;
    if (t)
        queue_remove(q, t);
    return t;
}

/* In main memory a worker that has ended a sub-batch makes merges that wait for
 * others first: they free accumulators, which another sub-batch adds to. */
struct starpu_task *ddp__sched_next(struct ddp__sched *s, int id,
                                    struct ddp__sched_calls *c)
{
    struct starpu_task *t;

    if ((t = take_update(s, id)) || (t = queue_take(&s->shared, id)) ||
        (t = ddp__claims_owned(&s->claims, id)) ||
        (is_in_main(id) && (t = steal_update(s, id))) ||
        (t = claim_sub(s, id, c)) || (t = steal_update(s, id)) ||
        (t = queue_take(&s->foreign, id)) || (t = queue_take(&s->input, id)))
        return t;
    return ddp__help_next(s, id);
}
