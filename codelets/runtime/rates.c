/* rates.c - how fast workers are, and when they will be done
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A worker has run a sub-batch for as long as its tasks took: what they waited
 * for, such as weights that come after a step, others would wait for, too. What
 * it has left follows from the tasks of its sub-batches that are not done, as
 * if each were as long as the others of its sub-batch.
 *
 * Networks have little in common: tasks of 20 us are not as fast for their work
 * as tasks of 20 ms, nor is one worker as much faster than another.  So each
 * graph has rates of its own.
 */
#include "config.h"

#include <math.h>

#include "runtime/rates.h"
#include "runtime/task_group.h"

static const struct ddp__rate unknown;

static const struct ddp__rate *find_rate(const struct ddp__claimer *w,
                                         int graph)
{
    const struct ddp__rate *r = &w->rate[(unsigned)graph % DDP__RATES];

    return r->graph == graph ? r : &unknown;
}

double ddp__rate_of(const struct ddp__claimer *w, int graph)
{
    const struct ddp__rate *r = find_rate(w, graph);

    return r->hope * r->rate;
}

/* One that may be changed; it may have been another graph's. */
static struct ddp__rate *get_rate(struct ddp__claimer *w, int graph)
{
    struct ddp__rate *r = &w->rate[(unsigned)graph % DDP__RATES];

    if (r->graph != graph)
        *r = (struct ddp__rate){.graph = graph};
    return r;
}

double ddp__rate_seconds(const struct ddp__claimer *w,
                         const struct ddp__sched_sub *u)
{
    return u->work / ddp__rate_of(w, u->graph);
}

/* Since when it could have done what it has claimed: data that are on their way
 * to it will come. */
static double since(const struct ddp__claimer *w, double now)
{
    return w->waits || (w->taken && !w->runs) ? now : w->since;
}

double ddp__rate_late(const struct ddp__claimer *w,
                      const struct ddp__sched_sub *u, double now)
{
    double begin = w->elsewhere > 0 ? w->elsewhere : now;

    return w->doing ? since(w, now) + w->left_s + ddp__rate_seconds(w, u)
                    : begin + 2 * ddp__rate_seconds(w, u);
}

double ddp__rate_busy(const struct ddp__claimer *w, double now)
{
    return w->doing ? fmax(w->left_s - (now - since(w, now)), 0) : 0;
}

double ddp__rate_free(const struct ddp__claimer *w,
                      const struct ddp__sched_sub *u, double now)
{
    return now >= ddp__rate_late(w, u, now) ? INFINITY : ddp__rate_busy(w, now);
}

double ddp__rate_moves_in(const struct ddp__sched_sub *u, int worker, int id)
{
    unsigned from = starpu_worker_get_memory_node((unsigned)worker),
             to = starpu_worker_get_memory_node((unsigned)id);
    double us;

    if (from == to)
        return 0;
    us = u->sums / starpu_transfer_bandwidth(from, to) + /* MB/s */
         starpu_transfer_latency(from, to);
    return us >= 0 ? 1e-6 * us : INFINITY; /* it may not have been measured */
}

/* Seconds until the sums of u's lane would have come to a worker. */
static double moved_in(const struct ddp__claims *c,
                       const struct ddp__sched_sub *u, int id)
{
    int holder = ddp__claims_holder(c, u);

    return holder < 0 ? 0 : ddp__rate_moves_in(u, holder, id);
}

double ddp__rate_ends_in(const struct ddp__claims *c, int id,
                         const struct ddp__sched_sub *u, double busy)
{
    return busy + moved_in(c, u, id) + ddp__rate_seconds(&c->by[id], u);
}

int ddp__rate_ends_within(const struct ddp__claims *c, int id,
                          const struct ddp__sched_sub *u, double seconds,
                          double now)
{
    const struct ddp__claimer *w = &c->by[id];
    double left = seconds - ddp__rate_free(w, u, now) - moved_in(c, u, id);

    return left > 0 ? (int)(left / ddp__rate_seconds(w, u)) : 0;
}

void ddp__rate_note(struct ddp__claims *c, int id)
{
    struct ddp__claimer *w = &c->by[id];
    int64_t oldest = -1; /* step that is not over */

    w->doing = w->waits = false;
    w->left_s = 0;
    for (const struct ddp__sched_sub *u = c->first; u; u = u->next) {
        if (u->pending == 0)
            continue;
        if (oldest < 0)
            oldest = u->age;
        if (u->owner != id)
            continue;
        w->waits = w->doing ? w->waits : u->age > oldest;
        w->doing = true;
        if (ddp__rate_of(w, u->graph) > 0)
            w->left_s += ddp__rate_seconds(w, u) * u->pending / u->tasks;
    }
    w->since = ddp__now();
}

void ddp__rate_begin(struct ddp__claims *c, int id)
{
    struct ddp__claimer *w = &c->by[id];

    w->taken--;
    w->runs = true;
    w->since = w->began;
}

void ddp__rate_end(struct ddp__claims *c, int id, struct ddp__sched_sub *u)
{
    struct ddp__claimer *w = &c->by[id];

    w->runs = false;
    if (u)
        u->ran += ddp__now() - w->began;
}

/* Who leaves all to others learns no more: it thinks better of itself with each
 * step until it tries again, so that a wrong rate does not last.  Where steps
 * are shorter than what it tries would take, it does so the more slowly. */
void ddp__rate_left(struct ddp__claimer *w, const struct ddp__sched_sub *u)
{
    struct ddp__rate *r = get_rate(w, u->graph);
    double now = ddp__now();

    if (u->age <= r->left)
        return;
    r->hope *= pow(1.05, fmin((now - r->left_at) / ddp__rate_seconds(w, u), 1));
    r->left = u->age;
    r->left_at = now;
}

/* What was claimed before the step before it was over waited for that. */
static void start_clocks(struct ddp__claims *c, int64_t age, double now)
{
    for (const struct ddp__sched_sub *u = c->first; u && u->age <= age;
         u = u->next)
        if (u->pending > 0)
            return;
    for (int i = 0; i < c->workers; i++)
        if (c->by[c->id[i]].waits) {
            c->by[c->id[i]].waits = false;
            c->by[c->id[i]].since = now;
        }
}

/* The first one had memory cleared, and shared its core.  Before the first step
 * weights come to GPUs one after another, which keeps their threads busy. */
static bool is_warm(const struct ddp__rate *r, const struct ddp__sched_sub *u)
{
    return r->warm && (is_in_main(u->owner) || u->age > r->first);
}

void ddp__rate_done(struct ddp__claims *c, const struct ddp__sched_sub *u)
{
    struct ddp__rate *r = get_rate(&c->by[u->owner], u->graph);
    double rate = u->work / fmax(u->ran, 1e-9);

    if (is_warm(r, u))
        r->rate = r->rate > 0 ? (r->rate + rate) / 2 : rate;
    r->hope = 1;
    if (!r->warm)
        r->first = u->age;
    r->warm = true;
    start_clocks(c, u->age, ddp__now());
}
