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
#include "runtime/alarm.h"
#include "runtime/claims.h"
#include "runtime/owners.h"
#include "runtime/rates.h"
#include "runtime/rest.h"
#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"
#include "runtime/task_group.h"
#include "runtime/task_queue.h"

struct worker {
    struct ddp__rest rest; /* while it waits */
    struct queue updates;  /* and merges, of the buckets that it owns */
};

struct sched {
    starpu_pthread_mutex_t lock;
    int cap; /* of every worker; 0: by its kind */
    struct ddp__claims claims;
    struct ddp__alarm alarm;
    struct queue shared; /* tasks that their sub-batch's owner cannot run */
    struct queue foreign, input;
    struct worker worker[STARPU_NMAXWORKERS]; /* by id */
};

enum { AHEAD = 8 }; /* tasks; the data of more are not sent ahead */

/* What to do once the lock is released: workers to wake, and data to send to
 * another one.  StarPU's lock of a buffer is not waited for with ours held. */
struct calls {
    int n, id[STARPU_NMAXWORKERS];
    int to, tasks; /* the worker, and how many tasks of its own */
    struct starpu_task *task[AHEAD];
    starpu_data_handle_t input; /* NULL: none */
};

static struct sched *lock_policy(unsigned ctx)
{
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);

    starpu_worker_relax_on();
    STARPU_PTHREAD_MUTEX_LOCK(&s->lock);
    starpu_worker_relax_off();
    return s;
}

static void unlock_policy(struct sched *s, const struct calls *c)
{
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
    for (int i = 0; i < c->n; i++)
        starpu_wake_worker_relax_light(c->id[i]);
    for (int i = 0; i < c->tasks; i++)
        ddp__ahead_task(c->task[i], c->to);
    if (c->input)
        ddp__ahead_input(c->input, c->to);
}

/* Call a worker that waits; false if it does not. */
static bool call_worker(struct sched *s, int id, struct calls *c)
{
    if (!s->claims.by[id].waiting)
        return false;
    s->claims.by[id].waiting = false;
    ddp__rest_end(&s->worker[id].rest);
    c->id[c->n++] = id;
    return true;
}

/* Call those that can run t; all, if t is NULL. */
static void call_workers(struct sched *s, struct starpu_task *t,
                         struct calls *c)
{
    for (int i = 0; i < s->claims.workers; i++)
        if (s->claims.by[s->claims.id[i]].waiting &&
            (!t || can_run(s->claims.id[i], t)))
            call_worker(s, s->claims.id[i], c);
}

static struct ddp__sched_tag *tag_of(const struct starpu_task *t)
{
    struct ddp__sched_tag *tag = t->sched_data;

    return tag && tag->magic == DDP__SCHED_MAGIC ? tag : NULL;
}

/* Claim a sub-batch and take its first task. */
static struct starpu_task *claim_sub(struct sched *s, int id, struct calls *c)
{
    struct ddp__sched_sub *u;
    struct starpu_task *t, *next, *first;

    s->claims.call = -1;
    s->claims.freed = false;
    u = ddp__claims_choose(&s->claims, id);
    if (s->claims.call >= 0)
        call_worker(s, s->claims.call, c);
    if (s->claims.freed)
        call_workers(s, NULL, c);
    if (!u)
        return NULL;
    ddp__claims_take(&s->claims, u, id);
    first = queue_take(&u->ready, id);
    for (t = u->ready.first; t; t = next) {
        next = t->next;
        if (can_run(id, t)) {
            if (c->tasks < AHEAD) /* it takes these after this call only */
                c->task[c->tasks++] = t;
            continue;
        }
        queue_remove(&u->ready, t);
        queue_put(&s->shared, t);
        call_workers(s, t, c);
    }
    c->to = id;
    c->input = ddp__ahead_expected(&s->claims, id);
    if (s->claims.by[id].cap > 1)
        call_workers(s, NULL, c); /* the others may have one more now */
    return first;
}

/* ---- what StarPU calls -------------------------------------------------- */

static void submit_task(struct starpu_task *task)
{
    struct ddp__sched_tag *tag = tag_of(task);
    struct calls c = {.n = 0};
    struct sched *s;

    if (!tag || tag->kind != DDP__SCHED_LANE)
        return;
    s = lock_policy(task->sched_ctx);
    tag->at = ddp__claims_sub(&s->claims, tag);
    if (tag->at) {
        if (tag->lanes && tag->at->tasks == 0) {
            tag->at->home = ddp__home_worker(&s->claims, task, tag);
            if (ddp__claims_complete(&s->claims, tag->at))
                call_workers(s, NULL, &c); /* they may take each other's now */
        }
        tag->at->tasks++;
        tag->at->pending++;
        tag->at->closed = tag->last;
    }
    unlock_policy(s, &c);
}

/* The worker that a ready task goes to, or -1. */
static int find_worker(const struct sched *s, struct starpu_task *t)
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
static void queue_task(struct sched *s, struct starpu_task *t, int id,
                       struct calls *c)
{
    struct ddp__sched_tag *tag = tag_of(t);
    struct ddp__sched_sub *u = tag ? tag->at : NULL;

    if (!tag) {
        queue_put(&s->foreign, t);
    } else if (tag->kind == DDP__SCHED_INPUT) {
        queue_put(&s->input, t);
    } else if (tag->kind != DDP__SCHED_LANE) {
        queue_put(id >= 0 ? &s->worker[id].updates : &s->foreign, t);
        if (id >= 0 && call_worker(s, id, c))
            return; /* nobody else need fetch its data */
    } else if (!u || (u->owner >= 0 && !can_run(u->owner, t))) {
        queue_put(&s->shared, t);
    } else {
        queue_put(&u->ready, t);
        if (u->owner >= 0) {
            call_worker(s, u->owner, c);
            return;
        }
    }
    call_workers(s, t, c);
}

/* Its data are sent before anybody can take the task, which may end then. */
static int push_task(struct starpu_task *task)
{
    static const struct calls none;
    struct calls c = none;
    struct sched *s = lock_policy(task->sched_ctx);
    int id = find_worker(s, task);

    if (id >= 0 && ddp__ahead_used(id)) {
        unlock_policy(s, &none);
        ddp__ahead_task(task, id);
        s = lock_policy(task->sched_ctx);
    }
    queue_task(s, task, id, &c);
    starpu_push_task_end(task);
    unlock_policy(s, &c);
    return 0;
}

/* A merge or update of a worker with the same memory: from another memory its
 * data, which may be on their way to the owner, would travel twice. */
static struct starpu_task *steal_update(struct sched *s, int id)
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
static struct starpu_task *take_update(struct sched *s, int id)
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
static struct starpu_task *next_task(struct sched *s, int id, struct calls *c)
{
    struct starpu_task *t;

    if ((t = take_update(s, id)) || (t = queue_take(&s->shared, id)) ||
        (t = ddp__claims_owned(&s->claims, id)) ||
        (is_in_main(id) && (t = steal_update(s, id))) ||
        (t = claim_sub(s, id, c)) || (t = steal_update(s, id)) ||
        (t = queue_take(&s->foreign, id)))
        return t;
    return queue_take(&s->input, id);
}

/* There is nothing for this worker before it is called, or until it looks
 * again. */
static void wait_a_while(struct sched *s, int id)
{
    double until = s->claims.by[id].until;
    struct worker *w = &s->worker[id];

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
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);
    struct calls c = {.n = 0};
    struct starpu_task *t;
    unsigned impl = 0;

    if (s->claims.by[id].waiting &&
        (s->claims.by[id].until == 0 || ddp__now() < s->claims.by[id].until)) {
        wait_a_while(s, id);
        return NULL;
    }
    s = lock_policy(ctx);
    s->claims.by[id].waiting = false;
    s->claims.by[id].until = 0;
    t = next_task(s, id, &c);
    s->claims.by[id].elsewhere =
        t && !(tag_of(t) && tag_of(t)->at) ? ddp__now() : 0;
    s->claims.by[id].taken += t && tag_of(t) && !is_in_main(id);
    if (!t) {
        s->claims.by[id].waiting = true;
        ddp__rest_idle(&s->worker[id].rest);
        if (s->claims.by[id].until > 0)
            ddp__alarm_set(&s->alarm);
    }
    unlock_policy(s, &c);
    if (t && starpu_worker_can_execute_task_first_impl((unsigned)id, t, &impl))
        starpu_task_set_implementation(t, impl);
    if (t && t->cl && t->cl->model) /* to ask is what calibrates a model */
        starpu_task_expected_length(t, starpu_worker_get_perf_archtype(id, ctx),
                                    impl);
    return t;
}

/* A task of a sub-batch is done. */
static void end_lane_task(struct sched *s, struct ddp__sched_sub *u,
                          struct calls *c)
{
    u->pending--;
    if (u->owner >= 0)
        ddp__rate_note(&s->claims, u->owner);
    if (u->pending > 0)
        return;
    if (u->owner >= 0)
        ddp__rate_done(&s->claims, u);
    ddp__claims_free_done(&s->claims);
    call_workers(s, NULL, c); /* the owner has room for another one */
}

/* StarPU calls it when the data have come. */
static void pre_exec(struct starpu_task *task, unsigned ctx)
{
    struct ddp__sched_tag *tag = tag_of(task);
    static const struct calls none;
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);
    int id = starpu_worker_get_id();

    s->claims.by[id].began = ddp__now(); /* only this worker reads it */
    if (!tag || is_in_main(id))
        return;
    s = lock_policy(ctx);
    ddp__rate_begin(&s->claims, id);
    unlock_policy(s, &none);
}

static void post_exec(struct starpu_task *task, unsigned ctx)
{
    struct ddp__sched_tag *tag = tag_of(task);
    int id = starpu_worker_get_id(), to;
    struct calls c = {.n = 0};
    struct sched *s;

    if (!tag || (tag->kind != DDP__SCHED_INPUT && !tag->at && is_in_main(id)))
        return;
    s = lock_policy(ctx);
    ddp__rate_end(&s->claims, id, tag->at);
    if (tag->at)
        end_lane_task(s, tag->at, &c);
    else if (tag->kind == DDP__SCHED_INPUT &&
             (to = ddp__ahead_filled(&s->claims, tag,
                                     STARPU_TASK_GET_HANDLE(task, 0))) >= 0) {
        c.to = to;
        c.input = ddp__ahead_expected(&s->claims, to);
    }
    unlock_policy(s, &c);
}

static void add_workers(unsigned ctx, int *ids, unsigned n)
{
    struct calls c = {.n = 0};
    struct sched *s = lock_policy(ctx);

    for (unsigned i = 0; i < n; i++) {
        bool gpu = starpu_worker_get_type(ids[i]) != STARPU_CPU_WORKER;

        s->claims.id[s->claims.workers++] = ids[i];
        s->claims.by[ids[i]].cap = s->cap ? s->cap : gpu ? 2 : 1;
    }
    unlock_policy(s, &c);
    for (unsigned i = 0; i < n; i++)
        starpu_sched_ctx_worker_shares_tasks_lists(ids[i], (int)ctx);
}

/* The policy of the first context needs no memory, because to begin cannot
 * fail.  Others are the program's own. */
static struct sched first;
static atomic_bool first_used;

static struct sched *sched_new(void)
{
    if (atomic_exchange(&first_used, true))
        return calloc(1, sizeof(struct sched));
    memset(&first, 0, sizeof(first));
    return &first;
}

static void sched_free(struct sched *s)
{
    if (s == &first)
        first_used = false;
    else
        free(s);
}

static void init_policy(unsigned ctx)
{
    struct sched *s = sched_new();

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
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);

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
static struct sched *lock_running_policy(void)
{
    const struct starpu_sched_policy *p = starpu_sched_ctx_get_sched_policy(0);
    struct sched *s;

    if (!p || p->pop_task != pop_task)
        return NULL;
    s = starpu_sched_ctx_get_policy_data(0);
    STARPU_PTHREAD_MUTEX_LOCK(&s->lock);
    return s;
}

int ddp__sched_cap(void)
{
    struct sched *s = lock_running_policy();
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
    struct sched *s = lock_running_policy();

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
    struct sched *s = lock_running_policy();

    if (!s)
        return;
    lower(&s->claims.most_main, most);
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
}

void ddp__sched_limit_gpu(int most)
{
    struct sched *s = lock_running_policy();

    if (!s)
        return;
    lower(&s->claims.most_gpu, most);
    for (int i = 0; i < s->claims.workers; i++)
        lower(&s->claims.by[s->claims.id[i]].cap, most);
    STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
}
