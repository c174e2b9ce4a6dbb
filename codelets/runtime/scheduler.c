/* scheduler.c - the "ddp" scheduling policy: sub-batches go to free workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Workers pull.  An unclaimed sub-batch keeps its ready tasks; the worker that
 * claims it takes them all, and later ones as they become ready.  A worker has
 * at most DDP_INFLIGHT sub-batches (1; a GPU 2) of one step or older ones;
 * those it may have begun of newer steps do not count, since they may wait for
 * the older: a cap over all of them could stop every worker for good.
 *
 * Sub-batches are ordered by submission: what a task waits for was submitted
 * before it, whereas numbers of steps may start again with another run.
 *
 * A worker that got nothing is `waiting` and does not look again before it is
 * called.  So everything that may let a worker continue must call it: a task
 * pushed, a sub-batch claimed (it may be this worker's turn) or done.  Only
 * what it leaves to faster workers makes it look again by itself, if they are
 * late.
 */
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <starpu_thread_util.h>

#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"
#include "runtime/task_group.h"
#include "runtime/task_queue.h"

enum {
    STICKY = 256, /* lanes whose worker is remembered; others share */
    STEPS = 64    /* whose claims are counted; others share */
};

/* A difference in rate that is none of noise. */
#define FASTER 1.3

/* One sub-batch of one step. */
struct ddp__sched_sub {
    struct ddp__sched_sub *next; /* in order of age, lane, sub */
    int64_t age;
    int lane, sub;
    int of; /* sub-batches that the step has; 0: unknown */
    double work;
    int owner;      /* worker; -1: unclaimed */
    double claimed; /* when; in seconds */
    int pending;    /* tasks submitted and not done: in flight while > 0 */
    bool closed;    /* none will be submitted any more; nor in older steps */
    struct queue ready;
};

struct worker {
    atomic_bool waiting;
    int cap;              /* sub-batches in flight */
    double rate;          /* of work, per second; 0: unknown */
    double since;         /* when it claimed the last sub-batch */
    double doing;         /* its work; 0: none is in flight */
    bool elsewhere;       /* its task belongs to no sub-batch */
    double until;         /* waiting: it looks again then; 0: when called */
    struct queue updates; /* and merges, of the buckets that it owns */
};

struct sched {
    starpu_pthread_mutex_t lock;
    int cap;      /* of every worker; 0: by its kind */
    int64_t step; /* being submitted */
    int64_t age;  /* steps so far: their order of submission */
    struct ddp__sched_sub *subs;
    struct queue shared; /* tasks that their sub-batch's owner cannot run */
    struct queue foreign, input;
    struct {
        int id;      /* worker that last had the lane; -1: none */
        int64_t age; /* in this step */
    } sticky[STICKY];
    int claims[STEPS]; /* by age: sub-batches claimed so far */
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

/* ---- sub-batches -------------------------------------------------------- */

static struct ddp__sched_tag *tag_of(const struct starpu_task *t)
{
    struct ddp__sched_tag *tag = t->sched_data;

    return tag && tag->magic == DDP__SCHED_MAGIC ? tag : NULL;
}

/* Free those that are done and get no more tasks. */
static void free_done(struct sched *s)
{
    struct ddp__sched_sub **at = &s->subs, *u;

    while ((u = *at)) {
        if (u->pending == 0 && (u->closed || u->age < s->age)) {
            *at = u->next;
            free(u);
        } else {
            at = &u->next;
        }
    }
}

/* Whether u comes before (age, lane, sub), or is it. */
static bool is_before(const struct ddp__sched_sub *u, int64_t age,
                      const struct ddp__sched_tag *tag)
{
    if (u->age != age)
        return u->age < age;
    if (u->lane != tag->lane)
        return u->lane < tag->lane;
    return u->sub <= tag->sub;
}

/* The sub-batch that a task being submitted belongs to, made if it is a new
 * one.  NULL: no memory for it, and its tasks will run anywhere. */
static struct ddp__sched_sub *sub_of(struct sched *s,
                                     const struct ddp__sched_tag *tag)
{
    struct ddp__sched_sub **at = &s->subs, *u;

    if (tag->step != s->step) {
        s->step = tag->step;
        s->age++;
        s->claims[s->age % STEPS] = 0;
        free_done(s);
    }
    for (; *at && is_before(*at, s->age, tag); at = &(*at)->next)
        if ((*at)->age == s->age && (*at)->lane == tag->lane &&
            (*at)->sub == tag->sub && !(*at)->closed)
            return *at;
    if ((u = calloc(1, sizeof(*u)))) {
        *u = (struct ddp__sched_sub){.next = *at,
                                     .age = s->age,
                                     .lane = tag->lane,
                                     .sub = tag->sub,
                                     .of = tag->subs,
                                     .work = tag->work > 0 ? tag->work : 1,
                                     .owner = -1};
        *at = u;
    }
    return u;
}

/* The worker that has the sums of the sub-batch's lane in a memory of its own;
 * else -1. */
static int bound_worker(const struct sched *s, const struct ddp__sched_sub *u)
{
    int id = s->sticky[(unsigned)u->lane % STICKY].id;

    return id >= 0 && s->sticky[(unsigned)u->lane % STICKY].age == u->age &&
                   starpu_worker_get_memory_node((unsigned)id) !=
                       STARPU_MAIN_RAM
               ? id
               : -1;
}

/* Lanes in flight on a worker, of steps that are not newer than age. */
static int in_flight(const struct sched *s, int id, int64_t age)
{
    const struct ddp__sched_sub *counted = NULL;
    int n = 0;

    for (struct ddp__sched_sub *u = s->subs; u && u->age <= age; u = u->next) {
        if (u->pending == 0 ||
            (u->owner < 0 ? bound_worker(s, u) : u->owner) != id)
            continue;
        n += !counted || counted->lane != u->lane || counted->age != u->age;
        counted = u;
    }
    return n;
}

/* Whether the worker, with `mine` in flight, may take one that begins with t:
 * it is below the cap, and no other worker that could run t has fewer. */
static bool may_claim(const struct sched *s, int id, int mine, int64_t age,
                      struct starpu_task *t)
{
    if (mine >= s->worker[id].cap)
        return false;
    for (int i = 0; mine > 0 && i < s->workers; i++)
        if (in_flight(s, s->id[i], age) < mine && can_run(s->id[i], t))
            return false;
    return true;
}

/* When a worker that should have ended what it does, or u, is late. */
static double late_at(const struct worker *w, const struct ddp__sched_sub *u,
                      double now)
{
    return w->doing > 0 ? w->since + 2 * w->doing / w->rate
                        : now + 2 * u->work / w->rate;
}

/* How many sub-batches like u another worker ends within so many seconds.  None
 * if it runs something else, or is late: nobody knows for how long. */
static int ends_within(const struct worker *w, const struct ddp__sched_sub *u,
                       double seconds, double now)
{
    double end = w->since + w->doing / w->rate;

    if (w->doing > 0 ? now >= late_at(w, u, now) : w->elsewhere)
        return 0;
    return (int)((seconds - fmax(w->doing > 0 ? end - now : 0, 0)) * w->rate /
                 u->work);
}

/* Sub-batches that are left of a step, but for those that u holds back. */
static int left_beside(const struct sched *s, const struct ddp__sched_sub *u)
{
    int left = u->of - s->claims[u->age % STEPS];

    for (struct ddp__sched_sub *v = u->next;
         v && v->age == u->age && v->lane == u->lane; v = v->next)
        left--;
    return left;
}

/* Whether faster workers will have ended u, and all that they could do instead,
 * before this one would have ended u, which begins with t.  It looks again when
 * the first of them is late. */
static bool leave_to_faster(struct sched *s, int id,
                            const struct ddp__sched_sub *u,
                            struct starpu_task *t)
{
    struct worker *me = &s->worker[id];
    int left = left_beside(s, u);
    double now = ddp__now(), mine, until = INFINITY;

    if (left <= 0 || me->rate == 0) /* the step has not said how many */
        return false;
    mine = u->work / me->rate;
    for (int i = 0; i < s->workers && left > 0; i++) {
        const struct worker *w = &s->worker[s->id[i]];
        int n = w->rate > FASTER * me->rate && can_run(s->id[i], t)
                    ? ends_within(w, u, mine, now)
                    : 0;

        if (n > 0)
            until = fmin(until, late_at(w, u, now));
        left -= n;
    }
    if (left > 0)
        return false;
    me->until = until;
    return true;
}

/* The sub-batch for a worker: of the oldest step that has one, that of the lane
 * it had before if it can be claimed, else the first. */
static struct ddp__sched_sub *choose_sub(struct sched *s, int id)
{
    struct ddp__sched_sub *u, *best = NULL;
    struct starpu_task *t;
    int64_t age = -1;
    int mine = 0;

    for (u = s->subs; u && (!best || u->age == best->age); u = u->next) {
        if (u->owner >= 0 || !(t = queue_first(&u->ready, id)))
            continue;
        if (u->age != age)
            mine = in_flight(s, id, age = u->age);
        if (!may_claim(s, id, mine, age, t) || leave_to_faster(s, id, u, t))
            continue;
        if (s->sticky[(unsigned)u->lane % STICKY].id == id)
            return u;
        if (!best)
            best = u;
    }
    return best;
}

static void claim(struct sched *s, struct ddp__sched_sub *u, int id)
{
    struct worker *w = &s->worker[id];

    u->owner = id;
    u->claimed = w->since = ddp__now();
    w->doing = u->work;
    s->claims[u->age % STEPS]++;
    s->sticky[(unsigned)u->lane % STICKY].id = id;
    s->sticky[(unsigned)u->lane % STICKY].age = u->age;
}

/* Claim a sub-batch and take its first task. */
static struct starpu_task *claim_sub(struct sched *s, int id, struct calls *c)
{
    struct ddp__sched_sub *u = choose_sub(s, id);
    struct starpu_task *t, *next, *first;

    if (!u)
        return NULL;
    claim(s, u, id);
    first = queue_take(&u->ready, id);
    for (t = u->ready.first; t; t = next) {
        next = t->next;
        if (can_run(id, t)) {
            prefetch_task(t, id);
            continue;
        }
        queue_remove(&u->ready, t);
        queue_put(&s->shared, t);
        call_workers(s, t, c);
    }
    if (s->worker[id].cap > 1)
        call_workers(s, NULL, c); /* the others may have one more now */
    return first;
}

/* The best ready task of what the worker has claimed: older steps first. */
static struct starpu_task *from_claimed(struct sched *s, int id)
{
    struct ddp__sched_sub *u, *best = NULL;

    for (u = s->subs; u && (!best || u->age == best->age); u = u->next)
        if (u->owner == id && u->ready.first &&
            (!best || u->ready.first->priority > best->ready.first->priority))
            best = u;
    return best ? queue_take(&best->ready, id) : NULL;
}

/* How fast its worker was with a sub-batch that is done. */
static void note_rate(struct sched *s, const struct ddp__sched_sub *u)
{
    struct worker *w = &s->worker[u->owner];
    double seconds = ddp__now() - u->claimed;
    double rate = u->work / fmax(seconds, 1e-9);

    w->rate = w->rate > 0 ? (w->rate + rate) / 2 : rate;
    if (in_flight(s, u->owner, INT64_MAX) == 0)
        w->doing = 0;
}

/* ---- what StarPU calls -------------------------------------------------- */

static void submit_task(struct starpu_task *task)
{
    struct ddp__sched_tag *tag = tag_of(task);
    struct sched *s;

    if (!tag || tag->kind != DDP__SCHED_LANE)
        return;
    s = lock_policy(task->sched_ctx);
    tag->at = sub_of(s, tag);
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
    struct ddp__sched_sub *u = tag ? tag->at : NULL;
    int id;

    if (u && u->owner < 0 && (id = bound_worker(s, u)) >= 0 && can_run(id, t))
        claim(s, u, id);
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
    } else if (!u || (u->owner >= 0 && !can_run(u->owner, t))) {
        queue_put(&s->shared, t);
    } else {
        queue_put(&u->ready, t);
        if (u->owner >= 0) {
            prefetch_task(t, u->owner);
            call_worker(s, u->owner, c);
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
        (t = queue_take(&s->shared, id)) || (t = from_claimed(s, id)) ||
        (t = claim_sub(s, id, c)) || (t = steal_update(s, id)) ||
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

    if (s->worker[id].waiting &&
        (s->worker[id].until == 0 || ddp__now() < s->worker[id].until))
        return NULL;
    s = lock_policy(ctx);
    s->worker[id].waiting = false;
    s->worker[id].until = 0;
    t = next_task(s, id, &c);
    s->worker[id].elsewhere = t && !(tag_of(t) && tag_of(t)->at);
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
        if (tag->at->owner >= 0)
            note_rate(s, tag->at);
        free_done(s);
        call_workers(s, NULL, &c); /* the owner has room for another one */
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
        s->sticky[i].id = -1;
    if (!starpu_sched_ctx_min_priority_is_set(ctx))
        starpu_sched_ctx_set_min_priority(ctx, INT_MIN);
    if (!starpu_sched_ctx_max_priority_is_set(ctx))
        starpu_sched_ctx_set_max_priority(ctx, INT_MAX);
    starpu_sched_ctx_set_policy_data(ctx, s);
}

static void deinit_policy(unsigned ctx)
{
    struct sched *s = starpu_sched_ctx_get_policy_data(ctx);

    for (struct ddp__sched_sub *u = s->subs, *next; u; u = next) {
        next = u->next;
        free(u);
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
    .policy_description = "sub-batches of a training step, to free workers",
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
