/* rates.c - how fast workers are, and when they will be done
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a worker has left follows from the tasks of its sub-batches that are not
 * done, as if each were as long as the others of its sub-batch.
 */
#include "config.h"

#include <math.h>

#include "runtime/rates.h"
#include "runtime/task_group.h"

double ddp__rate_late(const struct ddp__claimer *w,
                      const struct ddp__sched_sub *u, double now)
{
    return w->doing > 0 ? w->since + (w->doing + u->work) / w->rate
                        : now + 2 * u->work / w->rate;
}

double ddp__rate_busy(const struct ddp__claimer *w, double now)
{
    return w->doing > 0 && w->rate > 0
               ? fmax(w->doing / w->rate - (now - w->since), 0)
               : 0;
}

double ddp__rate_free(const struct ddp__claimer *w,
                      const struct ddp__sched_sub *u, double now)
{
    if (w->doing > 0 ? now >= ddp__rate_late(w, u, now) : w->elsewhere)
        return INFINITY;
    return ddp__rate_busy(w, now);
}

/* Seconds until the sums of u's lane would have come to a worker. */
static double moved_in(const struct ddp__claims *c,
                       const struct ddp__sched_sub *u, int id)
{
    int holder = ddp__claims_holder(c, u);
    unsigned from, to = starpu_worker_get_memory_node((unsigned)id);
    double us;

    if (holder < 0 ||
        (from = starpu_worker_get_memory_node((unsigned)holder)) == to)
        return 0;
    us = u->sums / starpu_transfer_bandwidth(from, to) + /* MB/s */
         starpu_transfer_latency(from, to);
    return us >= 0 ? 1e-6 * us : INFINITY; /* it may not have been measured */
}

double ddp__rate_ends_in(const struct ddp__claims *c, int id,
                         const struct ddp__sched_sub *u, double busy)
{
    return busy + moved_in(c, u, id) + u->work / c->by[id].rate;
}

int ddp__rate_ends_within(const struct ddp__claims *c, int id,
                          const struct ddp__sched_sub *u, double seconds,
                          double now)
{
    const struct ddp__claimer *w = &c->by[id];
    double left = seconds - ddp__rate_free(w, u, now) - moved_in(c, u, id);

    return left > 0 ? (int)(left * w->rate / u->work) : 0;
}

void ddp__rate_note(struct ddp__claims *c, int id)
{
    double left = 0;

    for (const struct ddp__sched_sub *u = c->first; u; u = u->next)
        if (u->owner == id && u->pending > 0)
            left += u->work * u->pending / u->tasks;
    c->by[id].doing = left;
    c->by[id].since = ddp__now();
}

/* Who leaves all to others learns no more: it thinks better of itself with each
 * step until it tries again, so that a wrong rate does not last. */
void ddp__rate_left(struct ddp__claimer *w, int64_t age)
{
    if (w->left != age)
        w->rate *= 1.05;
    w->left = age;
}

/* What was claimed before the step before it was over waited for that. */
static void start_clocks(struct ddp__claims *c, int64_t age, double now)
{
    struct ddp__sched_sub *u = c->first;

    for (; u && u->age <= age; u = u->next)
        if (u->pending > 0)
            return;
    for (; u; u = u->next)
        u->claimed = now;
}

void ddp__rate_done(struct ddp__claims *c, const struct ddp__sched_sub *u)
{
    struct ddp__claimer *w = &c->by[u->owner];
    double now = ddp__now();
    /* Those in flight share its time. */
    double share =
        (u->beside + ddp__claims_open(c, u->owner, INT64_MAX) + 1) / 2.0;
    double rate = share * u->work / fmax(now - u->claimed, 1e-9);

    if (w->warm)
        w->rate = w->rate > 0 ? (w->rate + rate) / 2 : rate;
    w->warm = true; /* the first one had memory cleared, and shared its core */
    start_clocks(c, u->age, now);
}
