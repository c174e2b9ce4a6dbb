/* claims.c - which worker takes which sub-batch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A worker has at most `cap` sub-batches (1; a GPU 2) of one step or older
 * ones; those it may have begun of newer steps do not count, since they may
 * wait for the older: a cap over all of them could stop every worker for good.
 *
 * A worker without a task leaves a ready sub-batch to another one only if
 * somebody will look again for certain:
 * - it has others in flight, and is called when one ends; or
 * - that worker has none, so that nothing keeps it from the sub-batch, which is
 *   at home there.  It was called when the sub-batch became ready; if it leaves
 *   it to faster ones, the sub-batch is nobody's, and all are called; or
 * - it looks again itself when that worker is late, which it then does not wait
 *   for.
 *
 * Sub-batches are ordered by submission: what a task waits for was submitted
 * before it, whereas numbers of steps may start again with another run.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/claims.h"
#include "runtime/rates.h"
#include "runtime/task_group.h"

/* A difference in rate that is none of noise. */
#define FASTER 1.3

void ddp__claims_init(struct ddp__claims *c)
{
    for (int i = 0; i < DDP__STICKY; i++)
        c->sticky[i].id = -1;
}

void ddp__claims_free(struct ddp__claims *c)
{
    for (struct ddp__sched_sub *u = c->first, *next; u; u = next) {
        next = u->next;
        free(u);
    }
}

void ddp__claims_free_done(struct ddp__claims *c)
{
    struct ddp__sched_sub **at = &c->first, *u;

    while ((u = *at)) {
        if (u->pending == 0 && (u->closed || u->age < c->age)) {
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

struct ddp__sched_sub *ddp__claims_sub(struct ddp__claims *c,
                                       const struct ddp__sched_tag *tag)
{
    struct ddp__sched_sub **at = &c->first, *u;

    if (tag->step != c->step) {
        c->step = tag->step;
        c->age++;
        c->submitted[c->age % DDP__CLAIM_STEPS] = 0;
        c->claimed[c->age % DDP__CLAIM_STEPS] = 0;
        ddp__claims_free_done(c);
    }
    for (; *at && is_before(*at, c->age, tag); at = &(*at)->next)
        if ((*at)->age == c->age && (*at)->lane == tag->lane &&
            (*at)->sub == tag->sub && !(*at)->closed)
            return *at;
    if ((u = calloc(1, sizeof(*u)))) {
        *u = (struct ddp__sched_sub){.next = *at,
                                     .age = c->age,
                                     .step = tag->step,
                                     .lane = tag->lane,
                                     .sub = tag->sub,
                                     .of = tag->subs,
                                     .graph = tag->graph,
                                     .work = tag->work > 0 ? tag->work : 1,
                                     .sums = tag->sums,
                                     .home = -1,
                                     .owner = -1};
        *at = u;
        c->submitted[c->age % DDP__CLAIM_STEPS]++;
    }
    return u;
}

int ddp__claims_last(const struct ddp__claims *c, int lane)
{
    return c->sticky[(unsigned)lane % DDP__STICKY].id;
}

int ddp__claims_holder(const struct ddp__claims *c,
                       const struct ddp__sched_sub *u)
{
    int id = ddp__claims_last(c, u->lane);

    return id >= 0 &&
                   c->sticky[(unsigned)u->lane % DDP__STICKY].age == u->age &&
                   !is_in_main(id)
               ? id
               : -1;
}

/* Lanes in flight on a worker, of steps that are not newer than age. */
static int in_flight(const struct ddp__claims *c, int id, int64_t age)
{
    const struct ddp__sched_sub *counted = NULL;
    int n = 0;

    for (struct ddp__sched_sub *u = c->first; u && u->age <= age; u = u->next) {
        if (u->pending == 0 ||
            (u->owner < 0 ? ddp__claims_holder(c, u) : u->owner) != id)
            continue;
        n += !counted || counted->lane != u->lane || counted->age != u->age;
        counted = u;
    }
    return n;
}

int ddp__claims_open(const struct ddp__claims *c, int id, int64_t age)
{
    int n = 0;

    for (const struct ddp__sched_sub *u = c->first; u && u->age <= age;
         u = u->next)
        n += u->owner == id && u->pending > 0;
    return n;
}

/* Whether the worker's memory has no room for another sub-batch. */
static bool is_full(const struct ddp__claims *c, int id, int64_t age)
{
    int most = is_in_main(id) ? c->most_main : c->most_gpu, n = 0;
    unsigned node = starpu_worker_get_memory_node((unsigned)id);

    for (int i = 0; most && i < c->workers; i++)
        if (starpu_worker_get_memory_node((unsigned)c->id[i]) == node)
            n += in_flight(c, c->id[i], age);
    return most && n >= most;
}

/* Whether the worker, with `mine` in flight, may take one that begins with t:
 * it is below the cap, and no other worker that could run t has fewer. */
static bool may_claim(const struct ddp__claims *c, int id, int mine,
                      int64_t age, struct starpu_task *t)
{
    if (mine >= c->by[id].cap || is_full(c, id, age))
        return false;
    for (int i = 0; mine > 0 && i < c->workers; i++)
        if (in_flight(c, c->id[i], age) < mine && can_run(c->id[i], t))
            return false;
    return true;
}

/* A worker that leaves something looks again then. */
static void look_again(struct ddp__claimer *w, double at)
{
    w->until = w->until > 0 ? fmin(w->until, at) : at;
}

/* Sub-batches that are left of a step, but for those that u holds back. */
static int left_without(const struct ddp__claims *c,
                        const struct ddp__sched_sub *u)
{
    int left = u->of - c->claimed[u->age % DDP__CLAIM_STEPS];

    for (struct ddp__sched_sub *v = u->next;
         v && v->age == u->age && v->lane == u->lane; v = v->next)
        left--;
    return left;
}

/* Whether faster workers will have ended u, and all that they could do instead,
 * before this one would have ended u, which begins with t; *late is when the
 * first of them is late. */
static bool faster_end(const struct ddp__claims *c, int id,
                       const struct ddp__sched_sub *u, struct starpu_task *t,
                       double *late)
{
    const struct ddp__claimer *me = &c->by[id];
    int left = left_without(c, u);
    double now = ddp__now(), mine;

    *late = INFINITY;
    if (left <= 0 ||
        ddp__rate_of(me, u->graph) == 0) /* the step has not said how many */
        return false;
    mine = ddp__rate_ends_in(c, id, u, ddp__rate_busy(me, now));
    for (int i = 0; i < c->workers && left > 0; i++) {
        const struct ddp__claimer *w = &c->by[c->id[i]];
        int n =
            ddp__rate_of(w, u->graph) > FASTER * ddp__rate_of(me, u->graph) &&
                    can_run(c->id[i], t)
                ? ddp__rate_ends_within(c, c->id[i], u, mine, now)
                : 0;

        if (n > 0)
            *late = fmin(*late, ddp__rate_late(w, u, now));
        left -= n;
    }
    return left <= 0;
}

/* What is at home here is nobody's then: the faster ones shall not leave it to
 * this worker in turn. */
static bool leave_to_faster(struct ddp__claims *c, int id,
                            struct ddp__sched_sub *u, struct starpu_task *t)
{
    double late;

    if (!faster_end(c, id, u, t, &late))
        return false;
    if (u->home == id) {
        u->home = -1;
        c->freed = true;
    }
    look_again(&c->by[id], late);
    ddp__rate_left(&c->by[id], u);
    return true;
}

/* Whether u shall go to a worker that does not have the sums of its lane: this
 * one ends it earlier than their holder, or has nothing to do, while the holder
 * has more than enough.  Of workers that have ended none nobody knows. */
static bool is_worth_moving(const struct ddp__claims *c, int id, int holder,
                            const struct ddp__sched_sub *u)
{
    const struct ddp__claimer *me = &c->by[id], *h = &c->by[holder];
    double now = ddp__now(), mine;

    if (c->stay || ddp__rate_of(me, u->graph) == 0 ||
        ddp__rate_of(h, u->graph) == 0)
        return false;
    mine = ddp__rate_ends_in(c, id, u, ddp__rate_busy(me, now));
    if (FASTER * mine <
        ddp__rate_ends_in(c, holder, u, ddp__rate_free(h, u, now)))
        return true;
    return !me->doing && h->doing &&
           ddp__rate_ends_within(c, holder, u, mine, now) < left_without(c, u);
}

/* Whether the holder of the sums leaves u, which begins with t, to a worker
 * that has room. */
static bool leave_to_other(struct ddp__claims *c, int id,
                           const struct ddp__sched_sub *u,
                           struct starpu_task *t)
{
    double now = ddp__now(), late;

    for (int i = 0; i < c->workers; i++) {
        int other = c->id[i];

        if (other == id || !can_run(other, t) ||
            ddp__rate_free(&c->by[other], u, now) == INFINITY ||
            !is_worth_moving(c, other, id, u) ||
            !may_claim(c, other, in_flight(c, other, u->age), u->age, t) ||
            faster_end(c, other, u, t, &late))
            continue;
        look_again(&c->by[id], ddp__rate_late(&c->by[other], u, now));
        c->call = other;
        return true;
    }
    return false;
}

/* Whether a worker takes u, which begins with t, although the sums of its lane
 * are elsewhere; if not, it looks again when their holder is late. */
static bool may_move(struct ddp__claims *c, int id, int holder,
                     const struct ddp__sched_sub *u)
{
    if (is_worth_moving(c, id, holder, u))
        return true;
    if (ddp__rate_of(&c->by[holder], u->graph) > 0)
        look_again(&c->by[id], ddp__rate_late(&c->by[holder], u, ddp__now()));
    return false;
}

/* Whether a worker may take u, which begins with t, having so many of its age
 * in flight. */
static bool may_take(struct ddp__claims *c, int id, int mine,
                     struct ddp__sched_sub *u, struct starpu_task *t)
{
    int holder = ddp__claims_holder(c, u);

    if (holder >= 0 && !can_run(holder, t))
        holder = -1;
    if (holder == id)
        return ddp__claims_open(c, id, u->age) < c->by[id].cap &&
               !leave_to_faster(c, id, u, t) && !leave_to_other(c, id, u, t);
    return may_claim(c, id, mine, u->age, t) &&
           (holder < 0 || may_move(c, id, holder, u)) &&
           !leave_to_faster(c, id, u, t);
}

/* In which order a worker takes sub-batches: its own, those of nobody, those of
 * others, of which it takes the last so that they keep neighbours, and those
 * whose sums another memory has.  What is at home nowhere is its own if it had
 * the lane before. */
enum rank { OWN, NOBODYS, OTHERS, HELD };

static enum rank rank_of(const struct ddp__claims *c, int id,
                         const struct ddp__sched_sub *u, struct starpu_task *t)
{
    int holder = ddp__claims_holder(c, u);

    if (holder >= 0)
        return holder == id ? OWN : HELD;
    if (u->home >= 0 && can_run(u->home, t))
        return u->home == id ? OWN : OTHERS;
    return ddp__claims_last(c, u->lane) == id ? OWN : NOBODYS;
}

/* Sub-batches of u's step and home that nobody has claimed. */
static int left_at_home(const struct ddp__claims *c,
                        const struct ddp__sched_sub *u)
{
    int left = 0;

    for (const struct ddp__sched_sub *v = c->first; v && v->age <= u->age;
         v = v->next)
        left += v->age == u->age && v->owner < 0 && v->home == u->home;
    return left;
}

bool ddp__claims_complete(const struct ddp__claims *c,
                          const struct ddp__sched_sub *u)
{
    return u->age < c->age || c->submitted[u->age % DDP__CLAIM_STEPS] >= u->of;
}

/* Whether a worker with so many in flight takes what is at home at another one:
 * not while more of the step may come, some for this worker, unless it has
 * nothing to do; and from another memory, to which its sums must go, only if
 * all of that is done earlier than there.  That worker is late when the sums
 * would have gone once: it may wait for others.  Who has not done any of these
 * will be as fast as that one. */
static bool may_take_over(struct ddp__claims *c, int id, int mine,
                          const struct ddp__sched_sub *u)
{
    const struct ddp__claimer *me = &c->by[id], *h = &c->by[u->home];
    double now = ddp__now(), moves, end;

    if (!ddp__claims_complete(c, u) &&
        (mine > 0 || in_flight(c, u->home, u->age) == 0))
        return false;
    if (is_in_main(id))
        return true;
    if (ddp__rate_of(h, u->graph) == 0)
        return false;
    moves = ddp__rate_moves_in(u, id, u->home);
    end = ddp__rate_busy(me, now) + 2 * moves +
          ddp__rate_seconds(ddp__rate_of(me, u->graph) > 0 ? me : h, u);
    if (ddp__rate_ends_within(c, u->home, u, end, now - moves) <
        left_at_home(c, u))
        return true;
    look_again(&c->by[id], ddp__rate_late(h, u, now) + moves);
    return false;
}

struct ddp__sched_sub *ddp__claims_choose(struct ddp__claims *c, int id)
{
    struct ddp__sched_sub *u, *best = NULL;
    enum rank rank, least = HELD;
    struct starpu_task *t;
    int64_t age = -1;
    int mine = 0;

    for (u = c->first; u && (!best || u->age == best->age); u = u->next) {
        if (u->owner >= 0 || u->sending || !(t = queue_first(&u->ready, id)))
            continue;
        if (u->age != age)
            mine = in_flight(c, id, age = u->age);
        rank = rank_of(c, id, u, t);
        if (!may_take(c, id, mine, u, t) ||
            (rank == OTHERS && !may_take_over(c, id, mine, u)))
            continue;
        if (rank == OWN)
            return u;
        if (!best || rank < least || (rank == least && rank == OTHERS)) {
            best = u;
            least = rank;
        }
    }
    return best;
}

void ddp__claims_take(struct ddp__claims *c, struct ddp__sched_sub *u, int id)
{
    u->owner = id;
    ddp__rate_note(c, id);
    c->claimed[u->age % DDP__CLAIM_STEPS]++;
    c->sticky[(unsigned)u->lane % DDP__STICKY].id = id;
    c->sticky[(unsigned)u->lane % DDP__STICKY].age = u->age;
}

struct starpu_task *ddp__claims_owned(struct ddp__claims *c, int id)
{
    struct ddp__sched_sub *u, *best = NULL;

    for (u = c->first; u && (!best || u->age == best->age); u = u->next)
        if (u->owner == id && u->ready.first &&
            (!best || u->ready.first->priority > best->ready.first->priority))
            best = u;
    return best ? queue_take(&best->ready, id) : NULL;
}
