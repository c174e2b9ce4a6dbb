/* scheduler.c - the "ddp" scheduling policy: sub-batches go to free workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Workers pull.  An unclaimed sub-batch keeps its ready tasks; the worker that
 * claims it (claims.c) takes them all, and later ones as they become ready.
 *
 * A worker that got nothing is `waiting` and does not look again before it is
 * called.  So everything that may let a worker continue must call it: a task
 * pushed, a sub-batch claimed (it may be this worker's turn), done, or no
 * longer at home anywhere, a step submitted to its end.  Only what it leaves to
 * other workers makes it look again by itself, if they are late (alarm.c).
 */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starpu_thread_util.h>

#include "runtime/ahead.h"
#include "runtime/owners.h"
#include "runtime/rates.h"
#include "runtime/scheduler.h"
#include "runtime/scheduler_calls.h"
#include "runtime/scheduler_help.h"
#include "runtime/scheduler_names.h"
#include "runtime/scheduler_next.h"
#include "runtime/task_group.h"

static struct ddp__sched_tag *tag_of(const struct starpu_task *t)
{
    struct ddp__sched_tag *tag = t->sched_data;

    return tag && tag->magic == DDP__SCHED_MAGIC ? tag : NULL;
}

/* ---- what StarPU calls -------------------------------------------------- */

static void submit_task(struct starpu_task *task)
{
    struct ddp__sched_tag *tag = tag_of(task);
    struct ddp__sched_calls c = {.n = 0};
    struct ddp__sched *s;

    if (!tag || tag->kind != DDP__SCHED_LANE)
        return;
    s = ddp__sched_lock(task->sched_ctx);
    tag->at = ddp__claims_sub(&s->claims, tag);
    if (tag->at) {
        if (tag->lanes && tag->at->tasks == 0) {
            tag->at->home = ddp__home_worker(&s->claims, task, tag);
            if (ddp__claims_complete(&s->claims, tag->at))
                /* they may take each other's now */
                ddp__sched_call_all(s, NULL, &c);
        }
        tag->at->tasks++;
        tag->at->pending++;
        tag->at->closed = tag->last;
    }
    ddp__sched_unlock(s, &c);
}

/* The worker that a ready task goes to, or -1. */
static int find_worker(const struct ddp__sched *s, struct starpu_task *t)
{
    const struct ddp__sched_tag *tag = tag_of(t);

    if (!tag || tag->kind == DDP__SCHED_INPUT)
        return -1;
    if (tag->kind != DDP__SCHED_LANE)
        return ddp__owner_worker(&s->claims, t, tag);
    return tag->at && tag->at->owner >= 0 && can_run(tag->at->owner, t)
               ? tag->at->owner
               : -1;
}

/* Queue a ready task where it belongs, and call who may run it.  id: the worker
 * that a merge or update goes to. */
static void queue_task(struct ddp__sched *s, struct starpu_task *t, int id,
                       struct ddp__sched_calls *c)
{
    struct ddp__sched_tag *tag = tag_of(t);
    struct ddp__sched_sub *u = tag ? tag->at : NULL;

    if (!tag) {
        queue_put(&s->foreign, t);
    } else if (tag->kind == DDP__SCHED_INPUT) {
        queue_put(&s->input, t);
    } else if (tag->kind != DDP__SCHED_LANE) {
        queue_put(id >= 0 ? &s->worker[id].updates : &s->foreign, t);
        if (id >= 0 && ddp__sched_call(s, id, c))
            return; /* nobody else need fetch its data */
    } else if (!u || (u->owner >= 0 && !can_run(u->owner, t))) {
        queue_put(&s->shared, t);
    } else {
        queue_put(&u->ready, t);
        if (u->owner >= 0) {
            ddp__help_ready(s, u, c);
            return;
        }
    }
    ddp__sched_call_all(s, t, c);
}

/* Its data are sent before anybody can take the task, which may end then. */
static int push_task(struct starpu_task *task)
{
    static const struct ddp__sched_calls none;
    struct ddp__sched_calls c = none;
    struct ddp__sched *s = ddp__sched_lock(task->sched_ctx);
    int id = find_worker(s, task);

    if (id >= 0 && ddp__ahead_used(id)) {
        ddp__sched_unlock(s, &none);
        ddp__ahead_task(task, id);
        s = ddp__sched_lock(task->sched_ctx);
    }
    queue_task(s, task, id, &c);
    starpu_push_task_end(task);
    ddp__sched_unlock(s, &c);
    return 0;
}

/* There is nothing for this worker before it is called, or until it looks
 * again. */
static void wait_a_while(struct ddp__sched *s, int id)
{
    double until = s->claims.by[id].until;
    struct ddp__sched_worker *w = &s->worker[id];

    if (!ddp__rest_due(&w->rest))
        return;
    starpu_worker_relax_on();
    STARPU_PTHREAD_MUTEX_LOCK(&s->lock);
    if (s->claims.by[id].waiting)
        ddp__rest_begin(&w->rest, &s->lock,
                        until > 0 ? until - ddp__now() : INFINITY);
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
    starpu_worker_relax_off();
}

static struct starpu_task *pop_task(unsigned ctx)
{
    int id = (int)starpu_worker_get_id_check();
    struct ddp__sched *s = starpu_sched_ctx_get_policy_data(ctx);
    struct ddp__sched_calls c = {.n = 0};
    struct starpu_task *t;
    unsigned impl = 0;

    if (s->claims.by[id].waiting &&
        (s->claims.by[id].until == 0 || ddp__now() < s->claims.by[id].until)) {
        wait_a_while(s, id);
        return NULL;
    }
    s = ddp__sched_lock(ctx);
    s->claims.by[id].waiting = false;
    s->claims.by[id].until = 0;
    t = ddp__sched_next(s, id, &c);
    s->claims.by[id].elsewhere =
        t && !(tag_of(t) && tag_of(t)->at) ? ddp__now() : 0;
    s->claims.by[id].taken += t && tag_of(t) && !is_in_main(id);
    ddp__help_taken(s, id, &c);
    if (!t) {
        s->claims.by[id].waiting = true;
        ddp__rest_idle(&s->worker[id].rest);
        if (s->claims.by[id].until > 0)
            ddp__alarm_set(&s->alarm);
    }
    ddp__sched_unlock(s, &c);
    if (t && starpu_worker_can_execute_task_first_impl((unsigned)id, t, &impl))
        starpu_task_set_implementation(t, impl);
    if (t && t->cl && t->cl->model) /* to ask is what calibrates a model */
        starpu_task_expected_length(t, starpu_worker_get_perf_archtype(id, ctx),
                                    impl);
    return t;
}

/* A task of a sub-batch is done.  While more are submitted, slower than they
 * run, there can be none left for a moment: how fast the worker is, only the
 * whole sub-batch tells. */
static void end_lane_task(struct ddp__sched *s, struct ddp__sched_sub *u,
                          struct ddp__sched_calls *c)
{
    u->pending--;
    if (u->owner >= 0)
        ddp__rate_note(&s->claims, u->owner);
    if (u->pending > 0)
        return;
    if (u->owner >= 0 && u->closed)
        ddp__rate_done(&s->claims, u);
    ddp__claims_free_done(&s->claims);
    ddp__sched_call_all(s, NULL, c); /* the owner has room for another one */
}

/* StarPU calls it when the data have come. */
static void pre_exec(struct starpu_task *task, unsigned ctx)
{
    struct ddp__sched_tag *tag = tag_of(task);
    static const struct ddp__sched_calls none;
    struct ddp__sched *s = starpu_sched_ctx_get_policy_data(ctx);
    int id = starpu_worker_get_id();

    s->claims.by[id].began = ddp__now(); /* only this worker reads it */
    if (!tag || is_in_main(id))
        return;
    s = ddp__sched_lock(ctx);
    ddp__rate_begin(&s->claims, id);
    ddp__sched_unlock(s, &none);
}

static void post_exec(struct starpu_task *task, unsigned ctx)
{
    struct ddp__sched_tag *tag = tag_of(task);
    int id = starpu_worker_get_id(), to;
    struct ddp__sched_calls c = {.n = 0};
    struct ddp__sched *s;

    if (!tag || (tag->kind != DDP__SCHED_INPUT && !tag->at && is_in_main(id)))
        return;
    s = ddp__sched_lock(ctx);
    ddp__rate_end(&s->claims, id, tag->at);
    if (tag->at)
        end_lane_task(s, tag->at, &c);
    else if (tag->kind == DDP__SCHED_INPUT &&
             (to = ddp__ahead_filled(&s->claims, tag,
                                     STARPU_TASK_GET_HANDLE(task, 0))) >= 0) {
        c.to = to;
        c.ahead = ddp__ahead_expected(&s->claims, to);
    }
    ddp__sched_unlock(s, &c);
}

static void add_workers(unsigned ctx, int *ids, unsigned n)
{
    struct ddp__sched_calls c = {.n = 0};
    struct ddp__sched *s = ddp__sched_lock(ctx);

    for (unsigned i = 0; i < n; i++) {
        bool gpu = starpu_worker_get_type(ids[i]) != STARPU_CPU_WORKER;

        s->claims.id[s->claims.workers++] = ids[i];
        s->claims.by[ids[i]].cap = s->cap ? s->cap : gpu ? 2 : 1;
    }
    ddp__sched_unlock(s, &c);
    for (unsigned i = 0; i < n; i++)
        starpu_sched_ctx_worker_shares_tasks_lists(ids[i], (int)ctx);
}

/* The policy of the first context needs no memory, because to begin cannot
 * fail.  Others are the program's own. */
static struct ddp__sched first;
static atomic_bool first_used;

static struct ddp__sched *sched_new(void)
{
    if (atomic_exchange(&first_used, true))
        return calloc(1, sizeof(struct ddp__sched));
    memset(&first, 0, sizeof(first));
    return &first;
}

static void sched_free(struct ddp__sched *s)
{
    if (s == &first)
        first_used = false;
    else
        free(s);
}

static void init_policy(unsigned ctx)
{
    struct ddp__sched *s = sched_new();

    if (!s)
        STARPU_ABORT_MSG("out of memory for the ddp scheduler"); /* as StarPU */
    STARPU_PTHREAD_MUTEX_INIT(&s->lock, NULL);
    if (ddp__sched_inflight(&s->cap) < 0)
        s->cap = 0; /* ddp__sched_check() has reported it */
    ddp__claims_init(&s->claims);
    ddp__alarm_init(&s->alarm, &s->claims, &s->lock);
    for (int i = 0; i < STARPU_NMAXWORKERS; i++)
        ddp__rest_init(&s->worker[i].rest);
    if (!starpu_sched_ctx_min_priority_is_set(ctx))
        starpu_sched_ctx_set_min_priority(ctx, INT_MIN);
    if (!starpu_sched_ctx_max_priority_is_set(ctx))
        starpu_sched_ctx_set_max_priority(ctx, INT_MAX);
    starpu_sched_ctx_set_policy_data(ctx, s);
}

static void deinit_policy(unsigned ctx)
{
    struct ddp__sched *s = starpu_sched_ctx_get_policy_data(ctx);

    ddp__alarm_fini(&s->alarm);
    ddp__claims_free(&s->claims);
    for (int i = 0; i < STARPU_NMAXWORKERS; i++)
        ddp__rest_fini(&s->worker[i].rest);
    STARPU_PTHREAD_MUTEX_DESTROY(&s->lock);
    sched_free(s);
}

struct starpu_sched_policy ddp__sched_policy = {
    .init_sched = init_policy,
    .deinit_sched = deinit_policy,
    .add_workers = add_workers,
    .submit_hook = submit_task,
    .push_task = push_task,
    .pop_task = pop_task,
    .pre_exec_hook = pre_exec,
    .post_exec_hook = post_exec,
    .policy_name = "ddp",
    .policy_description = "sub-batches of a training step, to free workers",
#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
    .prefetches = 1, /* else StarPU brings the input of all lanes to a GPU that
                        is the only one, and fills its memory */
#endif
    .worker_type = STARPU_WORKER_LIST,
};

/* The running policy's state, locked; NULL if it is another's. */
static struct ddp__sched *lock_running_policy(void)
{
    const struct starpu_sched_policy *p = starpu_sched_ctx_get_sched_policy(0);
    struct ddp__sched *s;

    if (!p || p->pop_task != pop_task)
        return NULL;
    s = starpu_sched_ctx_get_policy_data(0);
    STARPU_PTHREAD_MUTEX_LOCK(&s->lock);
    return s;
}

int ddp__sched_cap(void)
{
    struct ddp__sched *s = lock_running_policy();
    int cap = 0;

    for (int i = 0; s && i < s->claims.workers; i++)
        if (s->claims.by[s->claims.id[i]].cap > cap)
            cap = s->claims.by[s->claims.id[i]].cap;
    if (s)
        STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
    return cap;
}

void ddp__sched_stay(void)
{
    struct ddp__sched *s = lock_running_policy();

    if (!s)
        return;
    s->claims.stay = true;
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
}

static void lower(int *most, int to)
{
    if (!*most || *most > to)
        *most = to;
}

void ddp__sched_limit_main(int most)
{
    struct ddp__sched *s = lock_running_policy();

    if (!s)
        return;
    lower(&s->claims.most_main, most);
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
}

void ddp__sched_limit_gpu(int most)
{
    struct ddp__sched *s = lock_running_policy();

    if (!s)
        return;
    lower(&s->claims.most_gpu, most);
    for (int i = 0; i < s->claims.workers; i++)
        lower(&s->claims.by[s->claims.id[i]].cap, most);
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
}
