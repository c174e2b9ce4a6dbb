/* scheduler_calls.c - the policy's lock, and the workers that it calls
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <starpu_thread_util.h>

#include "runtime/ahead.h"
#include "runtime/scheduler_calls.h"

static void take_lock(struct ddp__sched *s)
{
    starpu_worker_relax_on();
    STARPU_PTHREAD_MUTEX_LOCK(&s->lock);
    starpu_worker_relax_off();
}

struct ddp__sched *ddp__sched_lock(unsigned ctx)
{
    struct ddp__sched *s = starpu_sched_ctx_get_policy_data(ctx);

    take_lock(s);
    return s;
}

static void release_lock(struct ddp__sched *s, const struct ddp__sched_calls *c)
{
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
    for (int i = 0; i < c->n; i++)
        starpu_wake_worker_relax_light(c->id[i]);
}

/* Those that would have claimed the sub-batch meanwhile may do so now. */
static void send_input(struct ddp__sched *s, struct ddp__sched_sub *u, int to)
{
    struct ddp__sched_calls c = {.n = 0};

    ddp__ahead_input(u->input, to);
    take_lock(s);
    u->sending = false;
    ddp__sched_call_all(s, NULL, &c);
    release_lock(s, &c);
}

void ddp__sched_unlock(struct ddp__sched *s, const struct ddp__sched_calls *c)
{
    release_lock(s, c);
    for (int i = 0; i < c->tasks; i++)
        ddp__ahead_task(c->task[i], c->to);
    if (c->ahead)
        send_input(s, c->ahead, c->to);
}

bool ddp__sched_call(struct ddp__sched *s, int id, struct ddp__sched_calls *c)
{
    if (!s->claims.by[id].waiting)
        return false;
    s->claims.by[id].waiting = false;
    ddp__rest_end(&s->worker[id].rest);
    c->id[c->n++] = id;
    return true;
}

void ddp__sched_call_all(struct ddp__sched *s, struct starpu_task *t,
                         struct ddp__sched_calls *c)
{
    for (int i = 0; i < s->claims.workers; i++)
        if (s->claims.by[s->claims.id[i]].waiting &&
            (!t || can_run(s->claims.id[i], t)))
            ddp__sched_call(s, s->claims.id[i], c);
}
