/* replay.c - what GPUs hold in memory during a step, task by task
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On a GPU StarPU keeps what is freed for buffers of the same size, so it holds
 * of each size as many as there were at a time, and what that is depends on
 * which tasks run together.  So this goes through a step as the policy does
 * (scheduler.c, claims.c), with the times that tasks are expected to take:
 * while one runs, the GPU takes the next that does not wait for it, and fetches
 * its buffers.  That is a merge whose sums have come; else a task of its lanes;
 * else it claims another lane; else it waits for the sums of a merge.  Sums are
 * sent to where they are merged as soon as both are there.
 *
 * How long that takes depends on what else is sent then.  So it goes through
 * the step twice, as if sums took no time, and as if the links of a GPU carried
 * one after another: where steps are mostly transfers, sums pile up.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/early.h"
#include "engine/engine.h"
#include "engine/footprint.h"
#include "engine/replay.h"
#include "engine/replay_next.h"
#include "engine/replay_sums.h"
#include "runtime/devices.h"
#include "runtime/gpu_speed.h"

/* ---- tasks -------------------------------------------------------------- */

static bool is_on_host(const ddp_graph_t *g, int k)
{
    return ddp__op_is(g->node[g->segment[k].begin]->call.op, DDP__IS_HOST);
}

/* All that tasks of a GPU use of the input, with the first of them. */
static void take_input(const struct ddp__replay_state *r,
                       struct ddp__replay_gpu *g)
{
    const ddp_graph_t *graph = r->e->graph;

    for (int i = 0; i < r->e->inputs; i++)
        if (r->e->input[i]->last_use >= graph->segment[r->first].begin)
            ddp__replay_take(g, ddp__value_size(graph, r->e->input[i]));
}

/* What a segment writes gets memory when it is ready, and does not wait for its
 * turn; the first one of a sub-batch when that is claimed. */
static void take_segment(struct ddp__replay_state *r, int gpu,
                         const struct ddp__replay_slot *s)
{
    const ddp_graph_t *graph = r->e->graph;
    int k = s->segment;

    if (k == r->first)
        take_input(r, &r->gpu[gpu]);
    for (int i = 0; i < graph->arenas; i++)
        if (graph->arena[i].segment == k)
            ddp__replay_take(&r->gpu[gpu], graph->arena[i].size);
    for (int b = 0; b < r->e->params->buckets; b++)
        if (r->reach.first[b] == k) {
            ddp__replay_take_sum(r, gpu, s->lane, b);
            *ddp__replay_at(r, s->lane, b) = gpu;
        }
}

static void give_used(const struct ddp__replay_state *r,
                      struct ddp__replay_gpu *g, int k)
{
    const ddp_graph_t *graph = r->e->graph;
    const struct ddp__segment *s = graph->segment;

    for (int i = 0; i < graph->arenas; i++)
        if (graph->arena[i].last_use == k)
            ddp__gpu_memory_give(&g->memory, graph->arena[i].size);
    for (int i = 0; i < r->e->inputs; i++) {
        const ddp_value_t *v = r->e->input[i];

        if (v->last_use >= s[k].begin && v->last_use < s[k].end)
            ddp__gpu_memory_give(&g->memory, ddp__value_size(graph, v));
    }
}

static void end_segment(struct ddp__replay_state *r, int gpu,
                        struct ddp__replay_slot *s)
{
    bool last = s->round + 1 == r->plan->lanes.rounds;
    int k = s->segment;

    give_used(r, &r->gpu[gpu], k);
    for (int b = 0; last && b < r->e->params->buckets; b++)
        if (r->reach.last[b] == k)
            ddp__replay_add_block(r, b, s->lane, 1);
    do
        s->segment++;
    while (s->segment < r->e->graph->segments &&
           is_on_host(r->e->graph, s->segment));
    if (s->segment < r->e->graph->segments) {
        take_segment(r, gpu, s);
        return;
    }
    s->segment = r->first;
    if (++s->round == r->plan->lanes.rounds)
        s->lane = -1;
}

static void end_job(struct ddp__replay_state *r, int gpu,
                    const struct ddp__replay_job *j)
{
    if (j->slot)
        end_segment(r, gpu, j->slot);
    else if (j->stride) {
        *ddp__replay_at(r, j->to, j->bucket) = gpu;
        ddp__replay_give_sum(r, j->from, j->bucket);
        ddp__replay_add_block(r, j->bucket, j->to, 2 * j->stride);
    }
}

/* ---- a step -------------------------------------------------------------- */

/* Begin a task while another runs, which ends then. */
static void take_turn(struct ddp__replay_state *r, int gpu)
{
    struct ddp__replay_gpu *g = &r->gpu[gpu];
    struct ddp__replay_job next = ddp__replay_next(r, gpu), ended = g->running;

    if (next.slot && next.slot->segment == r->first)
        take_segment(r, gpu, next.slot);
    end_job(r, gpu, &ended);
    g->running = next;
    if (ddp__replay_is_job(&next))
        g->until = fmax(r->now, next.at) + ddp__replay_us(r, &next);
    else if (!ddp__replay_is_job(&ended))
        g->until = ddp__replay_next_change(r, g);
}

/* What is kept from step to step. */
static void take_lasting(struct ddp__replay_state *r)
{
    const struct ddp__engine *e = r->e;

    for (int b = 0; b < e->params->buckets; b++) {
        struct ddp__replay_gpu *owner = &r->gpu[ddp__replay_owner(r, b)];

        for (int i = 0; i < r->plan->gpus; i++)
            ddp__replay_take(&r->gpu[i], ddp__replay_sum_size(r, b));
        if (e->state[b].size)
            ddp__replay_take(owner, e->state[b].size);
        if (e->ema)
            ddp__replay_take(owner, ddp__replay_sum_size(r, b));
        if (ddp__early_used(e)) {
            ddp__replay_take(owner, e->early->kept[b].w.size);
            ddp__replay_take(owner, e->early->kept[b].state.size);
        }
    }
}

/* The sum of other ranks comes into the first lane's place. */
static void run_updates(struct ddp__replay_state *r)
{
    for (int b = 0; b < r->e->params->buckets; b++)
        if (r->reach.last[b] >= 0)
            ddp__replay_take_sum(r, ddp__replay_owner(r, b), 0, b);
}

/* The GPU whose turn is next; those that are busy before those that wait for
 * them; -1: all is done. */
static int next_gpu(const struct ddp__replay_state *r)
{
    int best = 0;

    for (int i = 1; i < r->plan->gpus; i++) {
        const struct ddp__replay_gpu *a = &r->gpu[i], *b = &r->gpu[best];

        if (a->until < b->until ||
            (a->until == b->until && ddp__replay_is_job(&a->running) &&
             !ddp__replay_is_job(&b->running)))
            best = i;
    }
    return r->gpu[best].until < INFINITY ? best : -1;
}

/* Forget a step, but for the most of each size. */
static void begin_step(struct ddp__replay_state *r, double link)
{
    size_t sums = (size_t)r->e->spec.lanes * (size_t)r->e->params->buckets + 1;

    r->link = link;
    r->now = 0;
    for (int i = 0; i < r->e->spec.lanes; i++)
        r->home[i] = -1;
    memset(r->there, 0, sums * sizeof(*r->there));
    memset(r->summed, 0, sums * sizeof(*r->summed));
    for (int i = 0; i < r->plan->gpus; i++) {
        struct ddp__replay_gpu *g = &r->gpu[i];

        ddp__gpu_memory_empty(&g->memory);
        for (int k = 0; k < r->plan->lanes.in_flight; k++)
            g->slot[k].lane = -1;
        g->running = (struct ddp__replay_job){.slot = NULL};
        g->gradients = 0;
        g->merges = 0;
        g->until = g->sent = g->got = 0;
    }
    take_lasting(r);
}

static void run_step(struct ddp__replay_state *r, double link)
{
    int gpu;

    begin_step(r, link);
    while ((gpu = next_gpu(r)) >= 0) {
        r->now = r->gpu[gpu].until;
        take_turn(r, gpu);
    }
    run_updates(r);
}

/* ---- all of it ---------------------------------------------------------- */

static bool make_gpu(const struct ddp__replay_state *r,
                     struct ddp__replay_gpu *g)
{
    const struct ddp__engine *e = r->e;
    size_t slots = (size_t)r->plan->lanes.in_flight,
           sums = (size_t)e->spec.lanes * (size_t)e->params->buckets;

    g->slot = calloc(slots, sizeof(*g->slot));
    g->merge = calloc(sums + 1, sizeof(*g->merge));
    return ddp__gpu_memory_new(&g->memory, e->graph->segments +
                                               3 * e->params->buckets +
                                               e->inputs) &&
           g->slot && g->merge;
}

static bool make_replay(struct ddp__replay_state *r)
{
    const struct ddp__engine *e = r->e;
    size_t sums = (size_t)e->spec.lanes * (size_t)e->params->buckets + 1;

    while (r->first + 1 < e->graph->segments && is_on_host(e->graph, r->first))
        r->first++;
    r->gpu = calloc((size_t)r->plan->gpus, sizeof(*r->gpu));
    r->there = calloc(sums, sizeof(*r->there));
    r->at = calloc(sums, sizeof(*r->at));
    r->us = calloc((size_t)e->graph->segments + 1, sizeof(*r->us));
    r->summed = calloc(sums, sizeof(*r->summed));
    r->home = calloc((size_t)e->spec.lanes + 1, sizeof(*r->home));
    if (!r->gpu || !r->there || !r->at || !r->us || !r->summed || !r->home ||
        !ddp__reach_new(&r->reach, e))
        return false;
    for (int k = 0; k < e->graph->segments; k++) {
        for (int i = e->graph->segment[k].begin; i < e->graph->segment[k].end;
             i++)
            r->us[k] += ddp__call_us(e->ddp, &e->graph->node[i]->call,
                                     e->graph->spec.cap);
        r->lane_us += r->us[k];
    }
    for (int b = 0; b < e->params->buckets; b++)
        r->sums += (double)ddp__replay_sum_size(r, b);
    for (int i = 0; i < r->plan->gpus; i++)
        if (!make_gpu(r, &r->gpu[i]))
            return false;
    return true;
}

static void free_replay(struct ddp__replay_state *r)
{
    for (int i = 0; r->gpu && i < r->plan->gpus; i++) {
        ddp__gpu_memory_free(&r->gpu[i].memory);
        free(r->gpu[i].slot);
        free(r->gpu[i].merge);
    }
    ddp__reach_free(&r->reach);
    free(r->gpu);
    free(r->there);
    free(r->at);
    free(r->us);
    free(r->summed);
    free(r->home);
}

static void note_gpu(const struct ddp__replay_gpu *g,
                     struct ddp__replayed *most)
{
    double held = ddp__gpu_memory_bytes(&g->memory);

    if (held > most->held)
        *most = (struct ddp__replayed){.held = held,
                                       .live = g->memory.most_live,
                                       .gradients = g->most_gradients,
                                       .others = g->most_others};
}

int ddp__replay(const struct ddp__engine *e,
                const struct ddp__replay_plan *plan, struct ddp__replayed *most)
{
    struct ddp__replay_state r = {.e = e, .plan = plan};
    bool enough = make_replay(&r);

    *most = (struct ddp__replayed){0};
    if (enough)
        run_step(&r, INFINITY);
    if (enough && plan->gpus > 1)
        run_step(&r, 1e-6 * ddp__gpu_link(e->ddp));
    for (int i = 0; enough && i < plan->gpus; i++)
        note_gpu(&r.gpu[i], most);
    free_replay(&r);
    return enough ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for a plan of it");
}
