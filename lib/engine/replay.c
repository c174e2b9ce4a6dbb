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
#include "engine/gpu_memory.h"
#include "engine/lanes.h"
#include "engine/reduce.h"
#include "engine/replay.h"
#include "runtime/devices.h"
#include "runtime/gpu_speed.h"

/* A sub-batch under way. */
struct slot {
    int lane, round, segment; /* lane -1: there is none */
};

/* A segment of a slot's sub-batch, or without a slot the merge of two blocks of
 * `stride` lanes that begin at to and from. */
struct job {
    struct slot *slot;
    int bucket, to, from, stride; /* stride 0, and no slot: nothing */
    double at;                    /* when the sums of a merge have come */
};

struct gpu {
    struct ddp__gpu_memory memory;
    double gradients, most_gradients, most_others;
    struct slot *slot; /* in_flight */
    struct job running, *merge;
    int merges;       /* that have not begun */
    double until;     /* when the running job ends, or there may be another */
    double sent, got; /* when its links are free, out and in */
};

struct replay {
    const struct ddp__engine *e;
    const struct ddp__replay_plan *plan;
    struct ddp__reach reach;
    struct gpu *gpu;
    uint32_t *there;  /* lane x bucket: the GPUs that have the sum, as bits */
    int *summed;      /* lane x bucket: lanes from this on that it is of */
    int *at;          /* likewise: the GPU that has the last version */
    int *home;        /* by lane: the GPU that claimed it; -1: none has */
    double *us;       /* by segment: how long it takes */
    double lane_us;   /* all segments */
    double sums;      /* bytes of a lane's */
    double now, link; /* microseconds; bytes in one between two GPUs */
    int first;        /* segment that runs on a GPU */
};

/* ---- sums --------------------------------------------------------------- */

static void take(struct gpu *g, size_t size)
{
    ddp__gpu_memory_take(&g->memory, size);
    g->most_others = fmax(g->most_others, g->memory.live - g->gradients);
}

static size_t sum_size(const struct replay *r, int b)
{
    return 4 * r->e->params->bucket[b].len;
}

static uint32_t *where_sum(const struct replay *r, int lane, int b)
{
    return &r->there[lane * r->e->params->buckets + b];
}

static void take_sum(struct replay *r, int gpu, int lane, int b)
{
    uint32_t *there = where_sum(r, lane, b);
    struct gpu *g = &r->gpu[gpu];

    if (*there >> gpu & 1)
        return;
    *there |= UINT32_C(1) << gpu;
    g->gradients += (double)ddp__pool_size(sum_size(r, b));
    g->most_gradients = fmax(g->most_gradients, g->gradients);
    take(g, sum_size(r, b));
}

/* On all GPUs that have had it. */
static void give_sum(struct replay *r, int lane, int b)
{
    uint32_t *there = where_sum(r, lane, b);

    for (int i = 0; i < r->plan->gpus; i++)
        if (*there >> i & 1) {
            ddp__gpu_memory_give(&r->gpu[i].memory, sum_size(r, b));
            r->gpu[i].gradients -= (double)ddp__pool_size(sum_size(r, b));
        }
    *there = 0;
}

static int owner_of(const struct replay *r, int b)
{
    return r->e->owner[b] % r->plan->gpus;
}

static int *at_sum(const struct replay *r, int lane, int b)
{
    return &r->at[lane * r->e->params->buckets + b];
}

/* When the sum has come to a GPU, if it is sent now. */
static double send_sum(struct replay *r, int gpu, int lane, int b)
{
    struct gpu *to = &r->gpu[gpu], *from = &r->gpu[*at_sum(r, lane, b)];
    double begin = fmax(r->now, fmax(to->got, from->sent));

    take_sum(r, gpu, lane, b);
    if (to == from)
        return r->now;
    return to->got = from->sent = begin + (double)sum_size(r, b) / r->link;
}

/* Its data are fetched at once. */
static void add_merge(struct replay *r, struct job m)
{
    int lane = ddp__reduce_place(r->e, m.bucket,
                                 &(struct ddp__merge){.to = m.to,
                                                      .from = m.from,
                                                      .stride = m.from - m.to});
    int at = *at_sum(r, m.to, m.bucket);
    int gpu = at == *at_sum(r, m.from, m.bucket) ? at
              : lane >= 0                        ? r->home[lane]
                                                 : owner_of(r, m.bucket);
    struct gpu *g = &r->gpu[gpu];

    m.at = send_sum(r, gpu, m.to, m.bucket);
    m.at = fmax(m.at, send_sum(r, gpu, m.from, m.bucket));
    g->merge[g->merges++] = m;
}

/* A block of so many lanes is summed.  Merge it with its neighbour when that
 * is, too, if there is one, and all of both are this rank's. */
static void add_block(struct replay *r, int b, int lane, int width)
{
    const struct ddp__own_lanes *l = &r->plan->lanes;
    int *summed = &r->summed[b * r->e->spec.lanes], to, from = 0;

    summed[lane] = width;
    for (to = lane; width < l->used; width *= 2) {
        to = to / (2 * width) * (2 * width);
        from = to + width;
        if (from < l->used)
            break;
        summed[to] = 2 * width;
    }
    if (width < l->used && to >= l->begin &&
        (from + width <= l->end || l->end == l->used) && summed[to] >= width &&
        summed[from] >= width)
        add_merge(r, (struct job){
                         .bucket = b, .to = to, .from = from, .stride = width});
}

/* ---- tasks -------------------------------------------------------------- */

static bool is_on_host(const ddp_graph_t *g, int k)
{
    return ddp__op_is(g->node[g->segment[k].begin]->call.op, DDP__IS_HOST);
}

/* All that tasks of a GPU use of the input, with the first of them. */
static void take_input(const struct replay *r, struct gpu *g)
{
    const ddp_graph_t *graph = r->e->graph;

    for (int i = 0; i < r->e->inputs; i++)
        if (r->e->input[i]->last_use >= graph->segment[r->first].begin)
            take(g, ddp__value_size(graph, r->e->input[i]));
}

/* What a segment writes gets memory when it is ready, and does not wait for its
 * turn; the first one of a sub-batch when that is claimed. */
static void take_segment(struct replay *r, int gpu, const struct slot *s)
{
    const ddp_graph_t *graph = r->e->graph;
    int k = s->segment;

    if (k == r->first)
        take_input(r, &r->gpu[gpu]);
    for (int i = 0; i < graph->arenas; i++)
        if (graph->arena[i].segment == k)
            take(&r->gpu[gpu], graph->arena[i].size);
    for (int b = 0; b < r->e->params->buckets; b++)
        if (r->reach.first[b] == k) {
            take_sum(r, gpu, s->lane, b);
            *at_sum(r, s->lane, b) = gpu;
        }
}

static void give_used(const struct replay *r, struct gpu *g, int k)
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

static void end_segment(struct replay *r, int gpu, struct slot *s)
{
    bool last = s->round + 1 == r->plan->lanes.rounds;
    int k = s->segment;

    give_used(r, &r->gpu[gpu], k);
    for (int b = 0; last && b < r->e->params->buckets; b++)
        if (r->reach.last[b] == k)
            add_block(r, b, s->lane, 1);
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

static void end_job(struct replay *r, int gpu, const struct job *j)
{
    if (j->slot)
        end_segment(r, gpu, j->slot);
    else if (j->stride) {
        *at_sum(r, j->to, j->bucket) = gpu;
        give_sum(r, j->from, j->bucket);
        add_block(r, j->bucket, j->to, 2 * j->stride);
    }
}

/* ---- which task is next ------------------------------------------------- */

static bool is_backward(const struct replay *r, const struct slot *s)
{
    const ddp_graph_t *g = r->e->graph;

    return g->node[g->segment[s->segment].begin]->phase != DDP__FORWARD;
}

/* Backward passes come first, then lower lanes. */
static bool is_before(const struct replay *r, const struct slot *a,
                      const struct slot *b)
{
    if (is_backward(r, a) != is_backward(r, b))
        return is_backward(r, a);
    return a->lane < b->lane;
}

/* Of the sub-batches that do not wait for the running task; NULL: none. */
static struct slot *ready_slot(const struct replay *r, const struct gpu *g)
{
    struct slot *best = NULL;

    for (int i = 0; i < r->plan->lanes.in_flight; i++) {
        struct slot *s = &g->slot[i];

        if (s->lane >= 0 && s != g->running.slot &&
            (!best || is_before(r, s, best)))
            best = s;
    }
    return best;
}

/* The first lane that nobody has claimed of those that a GPU begins with; -1:
 * none; and how many there are. */
static int first_lane(const struct replay *r, int gpu, int *left)
{
    const struct ddp__own_lanes *l = &r->plan->lanes;
    int n = l->end - l->begin, gpus = r->plan->gpus, first = -1;
    int begin = l->begin + ddp__lanes_begin(n, gpus, gpu);

    *left = 0;
    for (int i = l->begin + ddp__lanes_begin(n, gpus, gpu + 1) - 1; i >= begin;
         i--)
        if (r->home[i] < 0) {
            first = i;
            ++*left;
        }
    return first;
}

/* When a GPU has ended what it has and so many lanes more. */
static double ends_in(const struct replay *r, int gpu, int more)
{
    for (int i = 0; i < r->plan->lanes.in_flight; i++)
        more += r->gpu[gpu].slot[i].lane >= 0;
    return more * r->lane_us;
}

/* One that a GPU begins with, or the last one of another if its sum will be
 * there earlier; -1: none. */
static int next_lane(const struct replay *r, int gpu)
{
    int left, lane = first_lane(r, gpu, &left);

    for (int i = r->plan->gpus - 1; lane < 0 && i >= 0; i--) {
        int first = first_lane(r, i, &left);

        if (first >= 0 &&
            ends_in(r, gpu, 1) + 2 * r->sums / r->link < ends_in(r, i, left))
            lane = first + left - 1;
    }
    return lane;
}

static struct slot *claim_lane(struct replay *r, int gpu)
{
    struct gpu *g = &r->gpu[gpu];
    int lane = next_lane(r, gpu);

    for (int i = 0; lane >= 0 && i < r->plan->lanes.in_flight; i++)
        if (g->slot[i].lane < 0) {
            g->slot[i] = (struct slot){.lane = lane, .segment = r->first};
            r->home[lane] = gpu;
            return &g->slot[i];
        }
    return NULL;
}

/* The first merge whose sums will have come by then; stride 0: there is none.
 */
static struct job take_merge(struct gpu *g, double then)
{
    struct job m = {.slot = NULL};
    int i = 0;

    while (i < g->merges && g->merge[i].at > then)
        i++;
    if (i == g->merges)
        return m;
    m = g->merge[i];
    for (g->merges--; i < g->merges; i++)
        g->merge[i] = g->merge[i + 1];
    return m;
}

/* With nothing else to do the GPU waits for the sums of a merge. */
static struct job next_job(struct replay *r, int gpu)
{
    struct gpu *g = &r->gpu[gpu];
    struct job j = take_merge(g, r->now);

    if (j.stride)
        return j;
    if (!(j.slot = ready_slot(r, g)))
        j.slot = claim_lane(r, gpu);
    return j.slot ? j : take_merge(g, INFINITY);
}

static bool is_job(const struct job *j)
{
    return j->slot || j->stride;
}

static double duration(const struct replay *r, const struct job *j)
{
    return j->slot ? r->us[j->slot->segment]
                   : ddp__call_us(r->e->ddp, &r->e->merge_bucket[j->bucket], 1);
}

/* When something may change for a GPU that has nothing to do: the sums of a
 * merge come, or another GPU ends a task. */
static double next_change(const struct replay *r, const struct gpu *g)
{
    double at = INFINITY;

    for (int i = 0; i < g->merges; i++)
        at = fmin(at, g->merge[i].at);
    for (int i = 0; i < r->plan->gpus; i++)
        if (is_job(&r->gpu[i].running))
            at = fmin(at, r->gpu[i].until);
    return at;
}

/* Begin a task while another runs, which ends then. */
static void take_turn(struct replay *r, int gpu)
{
    struct gpu *g = &r->gpu[gpu];
    struct job next = next_job(r, gpu), ended = g->running;

    if (next.slot && next.slot->segment == r->first)
        take_segment(r, gpu, next.slot);
    end_job(r, gpu, &ended);
    g->running = next;
    if (is_job(&next))
        g->until = fmax(r->now, next.at) + duration(r, &next);
    else if (!is_job(&ended))
        g->until = next_change(r, g);
}

/* What is kept from step to step. */
static void take_lasting(struct replay *r)
{
    const struct ddp__engine *e = r->e;

    for (int b = 0; b < e->params->buckets; b++) {
        struct gpu *owner = &r->gpu[owner_of(r, b)];

        for (int i = 0; i < r->plan->gpus; i++)
            take(&r->gpu[i], sum_size(r, b));
        if (e->state[b].size)
            take(owner, e->state[b].size);
        if (e->ema)
            take(owner, sum_size(r, b));
        if (ddp__early_used(e)) {
            take(owner, e->early->kept[b].w.size);
            take(owner, e->early->kept[b].state.size);
        }
    }
}

/* The sum of other ranks comes into the first lane's place. */
static void run_updates(struct replay *r)
{
    for (int b = 0; b < r->e->params->buckets; b++)
        if (r->reach.last[b] >= 0)
            take_sum(r, owner_of(r, b), 0, b);
}

/* The GPU whose turn is next; those that are busy before those that wait for
 * them; -1: all is done. */
static int next_gpu(const struct replay *r)
{
    int best = 0;

    for (int i = 1; i < r->plan->gpus; i++) {
        const struct gpu *a = &r->gpu[i], *b = &r->gpu[best];

        if (a->until < b->until ||
            (a->until == b->until && is_job(&a->running) &&
             !is_job(&b->running)))
            best = i;
    }
    return r->gpu[best].until < INFINITY ? best : -1;
}

/* Forget a step, but for the most of each size. */
static void begin_step(struct replay *r, double link)
{
    size_t sums = (size_t)r->e->spec.lanes * (size_t)r->e->params->buckets + 1;

    r->link = link;
    r->now = 0;
    for (int i = 0; i < r->e->spec.lanes; i++)
        r->home[i] = -1;
    memset(r->there, 0, sums * sizeof(*r->there));
    memset(r->summed, 0, sums * sizeof(*r->summed));
    for (int i = 0; i < r->plan->gpus; i++) {
        struct gpu *g = &r->gpu[i];

        ddp__gpu_memory_empty(&g->memory);
        for (int k = 0; k < r->plan->lanes.in_flight; k++)
            g->slot[k].lane = -1;
        g->running = (struct job){.slot = NULL};
        g->gradients = 0;
        g->merges = 0;
        g->until = g->sent = g->got = 0;
    }
    take_lasting(r);
}

static void run_step(struct replay *r, double link)
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

static bool make_gpu(const struct replay *r, struct gpu *g)
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

static bool make_replay(struct replay *r)
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
        r->sums += (double)sum_size(r, b);
    for (int i = 0; i < r->plan->gpus; i++)
        if (!make_gpu(r, &r->gpu[i]))
            return false;
    return true;
}

static void free_replay(struct replay *r)
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

static void note_gpu(const struct gpu *g, struct ddp__replayed *most)
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
    struct replay r = {.e = e, .plan = plan};
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
