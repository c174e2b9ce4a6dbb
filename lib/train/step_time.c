/* step_time.c - how long a step is expected to take
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sub-batches are as many at a time as workers, lanes and memory allow; merges
 * and updates are divided among the workers.  ddp-predict has the order of all
 * tasks as well, and what they wait for.
 */
#include "config.h"

#include "base/error.h"
#include "engine/engine.h"
#include "engine/update.h"
#include "ops_times.h"
#include "runtime/gpu_speed.h"
#include "train/trainer.h"

struct sum {
    const struct ddp__engine *e;
    double us; /* of tasks so far */
    struct ddp_time_plan plan;
};

static void add_call(struct sum *s, const struct ddp__call *c, int n)
{
    if (ddp__op_is(c->op, DDP__IS_HOST))
        return;
    s->us += ddp__expected_us(s->e->ddp, c, n, s->e->spec.graph.dtype);
    s->plan.operations++;
    s->plan.unknown += ddp__times_find(c, n) < 0;
}

static double sub_batch_us(struct sum *s)
{
    const ddp_graph_t *g = s->e->graph;

    s->us = 0;
    for (int k = 0; k < g->segments; k++) {
        s->us += ddp__times_task();
        for (int i = g->segment[k].begin; i < g->segment[k].end; i++)
            add_call(s, &g->node[i]->call, g->spec.cap);
    }
    return s->us;
}

static double merges_us(struct sum *s)
{
    s->us = 0;
    for (int b = 0; b < s->e->params->buckets; b++) {
        s->us += ddp__times_task();
        add_call(s, &s->e->merge_bucket[b], 1);
    }
    return s->us;
}

static double updates_us(struct sum *s)
{
    const struct ddp__engine *e = s->e;

    s->us = 0;
    for (int b = 0; e->spec.optimizer && b < e->params->buckets; b++) {
        if (!e->updates[b].calls)
            continue;
        s->us += 2 * ddp__times_task();
        add_call(s, &e->sqnorm[b], 1);
        for (int i = 0; i < e->updates[b].calls; i++)
            add_call(s, &e->updates[b].call[i], 1);
        if (e->ema)
            add_call(s, &e->ema->bucket[b].call, 1);
    }
    return s->us;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int quotient_up(int a, int b)
{
    return (a + b - 1) / b;
}

int ddp_trainer_time(const ddp_trainer_t *t, struct ddp_time_plan *p)
{
    int rc = ddp__trainer_check(t), lanes, subs, now, workers;
    struct sum s = {.e = rc < 0 ? NULL : t->engine};

    if (rc < 0)
        return rc;
    if (!p)
        return ddp__fail_null("p");
    workers = t->ddp->workers;
    subs = t->engine->spec.own ? t->loader.subs
                               : quotient_up(t->loader.subs, t->engine->ranks);
    lanes = least(t->engine->lane_end - t->engine->lane_begin, subs);
    now = least(lanes, workers);
    if (!t->ddp->gpu_workers && t->memory.in_flight > 0)
        now = least(now, t->memory.in_flight);
    now = now > 0 ? now : 1;
    s.plan.seconds = 1e-6 * quotient_up(subs, now) * sub_batch_us(&s);
    if (lanes > 1)
        s.plan.seconds += 1e-6 * (lanes - 1) * merges_us(&s) / workers;
    s.plan.seconds +=
        1e-6 * updates_us(&s) / least(workers, t->engine->params->buckets);
    *p = s.plan;
    return 0;
}
