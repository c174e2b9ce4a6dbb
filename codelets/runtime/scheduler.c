/* scheduler.c - the "ddp" scheduling policy: a lane runs where it began
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Workers pull.  Unclaimed lanes keep their ready tasks; the worker that claims
 * one takes them all, and later ones as they become ready.  A worker has at
 * most DDP_INFLIGHT lanes (1; a GPU 2) of one step or older ones; the lanes it
 * may have begun of newer steps do not count, since they may wait for the
 * older: a cap over all of them could stop every worker for good.
 *
 * Lanes are ordered by submission: what a task waits for was submitted before
 * it, whereas numbers of steps may start again with another run.
 *
 * A worker that got nothing is `waiting` and does not look again before it is
 * called.  So everything that may let a worker continue must call it: a task
 * pushed, a lane claimed (it may be this worker's turn) or released.
 */
#include "config.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <starpu_thread_util.h>

#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"
#include "runtime/task_queue.h"

enum { STICKY = 256 }; /* lanes whose worker is remembered; others share */

/* One lane of one step. */
struct ddp__sched_lane {
    struct ddp__sched_lane *next; /* in order of age, then lane */
    int64_t age;
    int lane;
    int owner;   /* worker; -1: unclaimed */
    int pending; /* tasks submitted and not done: in flight while > 0 */
    bool closed; /* none will be submitted any more; nor in older steps */
    struct queue ready;
};

struct worker {
    atomic_bool waiting;
    int cap;              /* lanes in flight */
    struct queue updates; /* and merges, of the buckets that it owns */
};

struct sched {
    starpu_pthread_mutex_t lock;
    int cap;      /* of every worker; 0: by its kind */
    int64_t step; /* being submitted */
    int64_t age;  /* steps so far: their order of submission */
    struct ddp__sched_lane *lanes;
    struct queue shared; /* lane tasks that their lane's owner cannot run */
    struct queue foreign, input;
    int sticky[STICKY]; /* worker that last had the lane; -1: none */
    int workers, id[STARPU_NMAXWORKERS];
    struct worker worker[STARPU_NMAXWORKERS]; /* by id */
};

/* Workers to wake once the lock is released. */
struct calls {
    int n, id[STARPU_NMAXWORKERS];
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
}

/* Call a worker that waits; false if it does not. */
static bool call_worker(struct sched *s, int id, struct calls *c)
{
    if (!s->worker[id].waiting)
        return false;
    s->worker[id].waiting = false;
    c->id[c->n++] = id;
    return true;
}

/* Call those that can run t; all, if t is NULL. */
static void call_workers(struct sched *s, struct starpu_task *t,
                         struct calls *c)
{
    for (int i = 0; i < s->workers; i++)
        if (s->worker[s->id[i]].waiting && (!t || can_run(s->id[i], t)))
            call_worker(s, s->id[i], c);
}

/* Begin the transfers of a task that will run on this worker. */
static void prefetch_task(struct starpu_task *t, int id)
{
    if (starpu_get_prefetch_flag() && !t->prefetched &&
        starpu_worker_get_memory_node((unsigned)id) != STARPU_MAIN_RAM)
        starpu_prefetch_task_input_for(t, (unsigned)id);
}

/* ---- lanes -------------------------------------------------------------- */

static struct ddp__sched_tag *tag_of(const struct starpu_task *t)
{
    struct ddp__sched_tag *tag = t->sched_data;

    return tag && tag->magic == DDP__SCHED_MAGIC ? tag : NULL;
}

/* Free the lanes that are done and get no more tasks. */
static void free_done_lanes(struct sched *s)
{
    struct ddp__sched_lane **at = &s->lanes, *l;

    while ((l = *at)) {
        if (l->pending == 0 && (l->closed || l->age < s->age)) {
            *at = l->next;
            free(l);
        } else {
            at = &l->next;
        }
    }
}

/* The lane that a task being submitted belongs to, made if it is a new one.
 * NULL: no memory for it, and its tasks will run anywhere. */
static struct ddp__sched_lane *lane_of(struct sched *s, int64_t step, int lane)
{
    struct ddp__sched_lane **at = &s->lanes, *l;

    if (step != s->step) {
        s->step = step;
        s->age++;
        free_done_lanes(s);
    }
    while (*at && ((*at)->age < s->age || (*at)->lane <= lane)) {
        if ((*at)->age == s->age && (*at)->lane == lane && !(*at)->closed)
            return *at;
        at = &(*at)->next;
    }
    if ((l = calloc(1, sizeof(*l)))) {
        *l = (struct ddp__sched_lane){
            .next = *at, .age = s->age, .lane = lane, .owner = -1};
        *at = l;
    }
    return l;
}

/* Lanes in flight on a worker that are not newer than age. */
static int lanes_in_flight(const struct sched *s, int id, int64_t age)
{
    int n = 0;

    for (struct ddp__sched_lane *l = s->lanes; l && l->age <= age; l = l->next)
        n += l->owner == id && l->pending > 0;
    return n;
}

/* Whether the worker may take a lane that begins with t now: it is below the
 * cap, and no other worker that could run t has fewer. */
static bool may_claim(const struct sched *s, int id, int64_t age,
                      struct starpu_task *t)
{
    int mine = lanes_in_flight(s, id, age);

    if (mine >= s->worker[id].cap)
        return false;
    for (int i = 0; mine > 0 && i < s->workers; i++)
        if (lanes_in_flight(s, s->id[i], age) < mine && can_run(s->id[i], t))
            return false;
    return true;
}

/* The lane for a worker: of the oldest step that has one, the lane it had
 * before if it can be had, else the first. */
static struct ddp__sched_lane *choose_lane(const struct sched *s, int id)
{
    struct ddp__sched_lane *l, *best = NULL;
    struct starpu_task *t;

    for (l = s->lanes; l && (!best || l->age == best->age); l = l->next) {
        if (l->owner >= 0 || !(t = queue_first(&l->ready, id)) ||
            !may_claim(s, id, l->age, t))
            continue;
        if (s->sticky[(unsigned)l->lane % STICKY] == id)
            return l;
        if (!best)
            best = l;
    }
    return best;
}

/* Claim a lane and take its first task. */
static struct starpu_task *claim_lane(struct sched *s, int id, struct calls *c)
{
    struct ddp__sched_lane *l = choose_lane(s, id);
    struct starpu_task *t, *next, *first;

    if (!l)
        return NULL;
    l->owner = id;
    s->sticky[(unsigned)l->lane % STICKY] = id;
    first = queue_take(&l->ready, id);
    for (t = l->ready.first; t; t = next) {
        next = t->next;
        if (can_run(id, t)) {
            prefetch_task(t, id);
            continue;
        }
        queue_remove(&l->ready, t);
        queue_put(&s->shared, t);
        call_workers(s, t, c);
    }
    if (s->worker[id].cap > 1)
        call_workers(s, NULL, c); /* the others may have one more now */
    return first;
}

/* The best ready task of the worker's lanes: older steps first. */
static struct starpu_task *from_lanes(struct sched *s, int id)
{
    struct ddp__sched_lane *l, *best = NULL;

    for (l = s->lanes; l && (!best || l->age == best->age); l = l->next)
        if (l->owner == id && l->ready.first &&
            (!best || l->ready.first->priority > best->ready.first->priority))
            best = l;
    return best ? queue_take(&best->ready, id) : NULL;
}

/* ---- what StarPU calls -------------------------------------------------- */

static void submit_task(struct starpu_task *task)
{
    struct ddp__sched_tag *tag = tag_of(task);
    struct sched *s;

    if (!tag || tag->kind != DDP__SCHED_LANE)
        return;
    s = lock_policy(task->sched_ctx);
    tag->at = lane_of(s, tag->step, tag->lane);
    if (tag->at) {
        tag->at->pending++;
        tag->at->closed = tag->last;
    }
    unlock_policy(s, &(struct calls){.n = 0});
}

/* The worker a merge or update goes to, or -1. */
static int owner_worker(const struct sched *s, struct starpu_task *t, int owner)
{
    int can[STARPU_NMAXWORKERS], n = 0;

    for (int i = 0; i < s->workers; i++)
        if (can_run(s->id[i], t))
            can[n++] = s->id[i];
    return n ? can[(unsigned)owner % (unsigned)n] : -1;
}

/* Queue a ready task where it belongs, and call who may run it. */
static void queue_task(struct sched *s, struct starpu_task *t, struct calls *c)
{
    struct ddp__sched_tag *tag = tag_of(t);
    struct ddp__sched_lane *l;
    int id;

    if (!tag) {
        queue_put(&s->foreign, t);
    } else if (tag->kind == DDP__SCHED_INPUT) {
        queue_put(&s->input, t);
    } else if (tag->kind != DDP__SCHED_LANE) {
        id = owner_worker(s, t, tag->owner);
        queue_put(id >= 0 ? &s->worker[id].updates : &s->foreign, t);
        if (id >= 0) {
            prefetch_task(t, id);
            if (call_worker(s, id, c))
                return; /* nobody else need fetch its data */
        }
    } else if (!(l = tag->at) || (l->owner >= 0 && !can_run(l->owner, t))) {
        queue_put(&s->shared, t);
    } else {
        queue_put(&l->ready, t);
        if (l->owner >= 0) {
            prefetch_task(t, l->owner);
            call_worker(s, l->owner, c);
            return;
        }
    }
    call_workers(s, t, c);
}

static int push_task(struct starpu_task *task)
{
    struct calls c = {.n = 0};
    struct sched *s = lock_policy(task->sched_ctx);

    queue_task(s, task, &c);
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

    for (int i = 0; !t && i < s->workers; i++)
        if (starpu_worker_get_memory_node((unsigned)s->id[i]) == node)
            t = queue_take(&s->worker[s->id[i]].updates, id);
    return t;
}

static struct starpu_task *next_task(struct sched *s, int id, struct calls *c)
{
    struct starpu_task *t;

    if ((t = queue_take(&s->worker[id].updates, id)) ||
        (t = queue_take(&s->shared, id)) || (t = from_lanes(s, id)) ||
        (t = claim_lane(s, id, c)) || (t = steal_update(s, id)) ||
        (t = queue_take(&s->foreign, id)))
        return t;
    return queue_take(&s->input, id);
}

static struct starpu_task *pop_task(unsigned ctx)
{
    int id = (int)starpu_worker_get_id_check();
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);
    struct calls c = {.n = 0};
    struct starpu_task *t;
    unsigned impl = 0;

    if (s->worker[id].waiting)
        return NULL;
    s = lock_policy(ctx);
    t = next_task(s, id, &c);
    if (!t)
        s->worker[id].waiting = true;
    unlock_policy(s, &c);
    if (t && starpu_worker_can_execute_task_first_impl((unsigned)id, t, &impl))
        starpu_task_set_implementation(t, impl);
    if (t && t->cl && t->cl->model) /* to ask is what calibrates a model */
        starpu_task_expected_length(t, starpu_worker_get_perf_archtype(id, ctx),
                                    impl);
    return t;
}

static void post_exec(struct starpu_task *task, unsigned ctx)
{
    struct ddp__sched_tag *tag = tag_of(task);
    struct calls c = {.n = 0};
    struct sched *s;

    if (!tag || tag->kind != DDP__SCHED_LANE || !tag->at)
        return;
    s = lock_policy(ctx);
    if (--tag->at->pending == 0) {
        free_done_lanes(s);
        call_workers(s, NULL, &c); /* the owner has room for another lane */
    }
    unlock_policy(s, &c);
}

static void add_workers(unsigned ctx, int *ids, unsigned n)
{
    struct calls c = {.n = 0};
    struct sched *s = lock_policy(ctx);

    for (unsigned i = 0; i < n; i++) {
        bool gpu = starpu_worker_get_type(ids[i]) != STARPU_CPU_WORKER;

        s->id[s->workers++] = ids[i];
        s->worker[ids[i]].cap = s->cap ? s->cap : gpu ? 2 : 1;
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
    for (int i = 0; i < STICKY; i++)
        s->sticky[i] = -1;
    if (!starpu_sched_ctx_min_priority_is_set(ctx))
        starpu_sched_ctx_set_min_priority(ctx, INT_MIN);
    if (!starpu_sched_ctx_max_priority_is_set(ctx))
        starpu_sched_ctx_set_max_priority(ctx, INT_MAX);
    starpu_sched_ctx_set_policy_data(ctx, s);
}

static void deinit_policy(unsigned ctx)
{
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);

    for (struct ddp__sched_lane *l = s->lanes, *next; l; l = next) {
        next = l->next;
        free(l);
    }
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
    .post_exec_hook = post_exec,
    .policy_name = "ddp",
    .policy_description = "lanes of a training step, each on one worker",
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

    for (int i = 0; s && i < s->workers; i++)
        if (s->worker[s->id[i]].cap > cap)
            cap = s->worker[s->id[i]].cap;
    if (s)
        STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
    return cap;
}

void ddp__sched_limit(int lanes)
{
    struct sched *s = lock_running_policy();

    for (int i = 0; s && i < s->workers; i++)
        if (s->worker[s->id[i]].cap > lanes)
            s->worker[s->id[i]].cap = lanes;
    if (s)
        STARPU_PTHREAD_MUTEX_UNLOCK(&s->lock);
}
