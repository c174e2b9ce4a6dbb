/* step.c - submitting the task graph of one step
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For each sub-batch, in its lane: input, forward, loss, backward.  Then for
 * each bucket of parameters a binary tree of merges over the lanes and the
 * update.  A graph with sums has several stages: all sub-batches go through
 * one, and the sum at its end is merged in the same tree, before the next.
 * Everything is submitted at once; data decide what waits for what.
 */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/early.h"
#include "engine/engine.h"
#include "engine/reduce.h"
#include "engine/slices.h"
#include "engine/step.h"
#include "engine/step_end.h"
#include "engine/step_updates.h"
#include "runtime/trace.h"

/* Steps of all engines, so that the policy can tell their lanes apart. */
static _Atomic int64_t sequence;

/* Where a step is in being submitted. */
struct cursor {
    struct ddp__engine *e;
    const struct ddp__step *s;
    struct ddp__task_group *group;
    int64_t sequence;
    int lane, sub, n;
    int subs;        /* of this rank */
    int nth, lanes;  /* the lane's place among those of this rank; lanes 0: it
                        does not matter */
    int slot;        /* of the lane's input ring */
    bool accumulate; /* not the lane's first sub-batch of the step */
};

static struct ddp__handle *handle_of(const struct cursor *c,
                                     const ddp_value_t *v)
{
    struct ddp__lane *l = &c->e->lane[c->lane];

    switch (v->role) {
    case DDP__INPUT:
        return &l->input[c->slot * c->e->inputs + c->e->input_of[v->base->id]];
    case DDP__PARAM:
        return c->e->averages ? &c->e->averages->bucket[v->bucket].handle
                              : &c->e->params->bucket[v->bucket].handle;
    case DDP__TEACHER:
        return &c->e->spec.graph.teach.params->bucket[v->bucket].handle;
    case DDP__GRAD:
        return &l->grad[v->bucket];
    case DDP__LANE_STATS:
        return &l->stats;
    case DDP__LANE_SUM:
        return &l->sum[v->bucket];
    case DDP__STEP_SUM:
        return &c->e->lane[0].sum[v->bucket];
    case DDP__SCALE:
        return &c->e->scaler;
    default:
        return &l->arena[v->base->arena];
    }
}

/* The first task of a lane's step that uses an accumulator writes it, each
 * layer its own part, and the others update it.  The same holds for an arena,
 * which a later segment may change in part. */
static enum ddp_access access_of(const struct cursor *c, int k,
                                 const ddp_value_t *v, enum ddp_access a)
{
    bool *begun;

    if (v->role == DDP__LANE_STATS || v->role == DDP__LANE_SUM)
        return c->accumulate || a == DDP_UPDATE ? DDP_UPDATE : DDP_WRITE;
    if (v->role == DDP__ACTIVATION && a != DDP_READ)
        return v->base->segment == k ? DDP_WRITE : DDP_UPDATE;
    if (v->role != DDP__GRAD)
        return a;
    begun = &c->e->grad_begun[c->lane * c->e->params->buckets + v->bucket];
    if (*begun)
        return DDP_UPDATE;
    *begun = true;
    return DDP_WRITE;
}

static void fill_tag(const struct cursor *c, int k, int end,
                     struct ddp__submit *sub)
{
    const struct ddp_graph *g = c->e->graph;
    const struct ddp__node *n = g->node[g->segment[k].begin];

    sub->tag.kind = sub->calls == 1 && ddp__op_is(n->call.op, DDP__IS_HOST) &&
                            n->call.host.fn == c->e->spec.graph.fill
                        ? DDP__SCHED_INPUT
                        : DDP__SCHED_LANE;
    sub->tag.lane = c->lane;
    sub->tag.sub = c->sub;
    sub->tag.nth = c->nth;
    sub->tag.lanes = c->lanes;
    sub->tag.subs = c->subs;
    sub->tag.graph = c->e->number;
    sub->tag.work = c->e->sample_flops * c->n / (g->sums + 1);
    sub->tag.sums = c->e->lane_bytes;
    sub->tag.step = c->sequence;
    sub->tag.last = g->segment[k].end == end;
    sub->backward = n->phase != DDP__FORWARD;
    sub->priority = n->phase == DDP__FORWARD ? DDP__PRIORITY_FORWARD
                                             : DDP__PRIORITY_BACKWARD;
}

/* Release what no later segment of this sub-batch reads. */
static void drop_used(const struct cursor *c, int k)
{
    const struct ddp_graph *g = c->e->graph;
    const struct ddp__segment *s = &g->segment[k];

    if (c->e->spec.keep)
        return; /* backward may run again, or the memory is reused at once */
    for (int i = 0; i < g->arenas && g->arena[i].segment <= k; i++)
        if (g->arena[i].last_use == k)
            ddp__handle_drop(&c->e->lane[c->lane].arena[i]);
    for (int i = 0; i < c->e->inputs; i++) {
        const ddp_value_t *v = c->e->input[i];

        if (v->last_use >= s->begin && v->last_use < s->end)
            ddp__handle_drop(handle_of(c, v));
    }
}

static void fill_task_call(const struct cursor *c, int k, int i,
                           uint64_t number, struct ddp__task_call *p)
{
    struct ddp__node *n = c->e->graph->node[i];

    *p = (struct ddp__task_call){
        .task.call = &n->call,
        .task.n = c->n,
        .task.accumulate = c->accumulate,
        .task.seed = ddp__op_is(n->call.op, DDP__IS_HOST) ? number : c->s->seed,
    };
    for (int b = 0; b < n->call.buffers; b++) {
        p->buf[b] = n->buf[b] ? handle_of(c, n->buf[b]) : NULL;
        if (!p->buf[b])
            continue;
        p->access[b] = access_of(c, k, n->buf[b], n->access[b]);
        if (n->buf[b]->role == DDP__LANE_STATS && n->access[b] == DDP_UPDATE)
            p->task.accumulate = true;
    }
}

/* Segment k, of those that end with node `end`. */
static int submit_segment(const struct cursor *c, int k, int end,
                          uint64_t number)
{
    const struct ddp__segment *s = &c->e->graph->segment[k];
    struct ddp__submit sub = {
        .call = c->e->task_call,
        .calls = s->end - s->begin,
        .group = c->group,
        .step = c->s->number,
        .split = c->e->spec.graph.split,
    };
    int rc;

    fill_tag(c, k, end, &sub);
    for (int i = 0; i < sub.calls; i++)
        fill_task_call(c, k, s->begin + i, number, &c->e->task_call[i]);
    if ((rc = ddp__submit(&sub)) == 0)
        drop_used(c, k);
    return rc;
}

/* The segments of nodes begin..end-1. */
static int submit_range(const struct cursor *c, int begin, int end,
                        uint64_t number)
{
    const struct ddp_graph *g = c->e->graph;
    int rc = 0;

    for (int k = 0; rc == 0 && k < g->segments; k++)
        if (g->segment[k].begin >= begin && g->segment[k].end <= end)
            rc = submit_segment(c, k, end, number);
    return rc;
}

/* This rank's lanes among the first so many. */
static int own_lanes(const struct ddp__engine *e, int lanes)
{
    int end = lanes < e->lane_end ? lanes : e->lane_end;

    return end > e->lane_begin ? end - e->lane_begin : 0;
}

/* Sub-batches of the step in this rank's lanes. */
static int own_subs(const struct ddp__engine *e, const struct ddp__step *s)
{
    return s->subs / e->spec.lanes * own_lanes(e, e->spec.lanes) +
           own_lanes(e, s->subs % e->spec.lanes);
}

/* Nodes begin..end-1, of a stage, for sub-batch `index` of the step. */
static int submit_sub(struct ddp__engine *e, const struct ddp__step *s,
                      int64_t seq, int index, int begin, int end)
{
    int lane = index % e->spec.lanes;
    struct cursor c = {
        .e = e,
        .s = s,
        .group = &e->group,
        .sequence = seq,
        .lane = lane,
        .sub = index,
        .subs = own_subs(e, s),
        .nth = lane - e->lane_begin,
        .lanes = e->ddp->gpu_workers ? own_lanes(e, s->subs) : 0,
        .n = s->n[index],
        .slot = (int)(e->lane[lane].subs % e->spec.ring),
        .accumulate = index >= e->spec.lanes,
    };

    return submit_range(&c, begin, end, s->first + (uint64_t)index);
}

/* The sum over all lanes, those of other ranks included. */
static int submit_total(struct ddp__engine *e, const struct ddp__step *s,
                        struct ddp__total t)
{
    int rc = ddp__reduce_submit(e, s, t);

    return rc < 0 || !ddp__comm_used(e) ? rc : ddp__comm_submit(e, s, t);
}

static int submit_bucket(struct ddp__engine *e, const struct ddp__step *s,
                         int b)
{
    int rc = submit_total(e, s, (struct ddp__total){DDP__TOTAL_BUCKET, b});

    e->grad_begun[b] |= ddp__comm_used(e);
    return rc;
}

static int submit_merges(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__total stats = {DDP__TOTAL_STATS, 0};
    bool early = s->update && ddp__early_used(e) && ddp__step_reached_any(e);
    bool slices = ddp__slices_used(e, s) &&
                  (ddp__comm_used(e) || ddp__step_reached_any(e));
    int rc = ddp__reduce_submit(e, s, stats);

    if (rc == 0 && early)
        rc = ddp__early_begin(e, s);
    for (int b = 0; rc == 0 && b < e->params->buckets; b++)
        if ((ddp__comm_used(e) ? e->reached[b] : ddp__step_reached(e, b)) &&
            (rc = submit_bucket(e, s, b)) == 0 && early)
            rc = ddp__step_early(e, s, b);
    if (rc == 0 && slices && !ddp__slices_merged(e, s))
        rc = ddp__slices_check(e, s);
    if (rc == 0 && ddp__comm_used(e))
        rc = ddp__comm_submit(e, s, stats);
    if (rc == 0 && slices && ddp__comm_used(e))
        rc = ddp__comm_gather(e, s);
    if (rc < 0 || !ddp_graph_training(e->graph))
        return rc;
    if (early)
        return ddp__step_early_end(e, s);
    return s->update && ddp__step_reached_any(e)
               ? ddp__step_updates(e, s, slices)
               : 0;
}

static void fail_step(struct ddp__engine *e, const struct ddp__step *s, int rc)
{
    ddp__task_group_fail(&e->group, s->number, rc, "submission", NULL);
    ddp__early_fail(e);
    if (ddp__comm_used(e))
        ddp__comm_fail(e, s);
}

/* The n sub-batches from `first` on, of as many lanes.  Each GPU begins with
 * others of them, so the first of each come first. */
static int submit_round(struct ddp__engine *e, const struct ddp__step *s,
                        int64_t seq, int first, int n, int begin, int end)
{
    int workers = e->ddp->gpu_workers ? e->ddp->gpu_workers : 1, rc = 0;

    for (int k = 0; rc == 0 && k * workers < n; k++)
        for (int w = 0; rc == 0 && w < workers; w++) {
            int i = ddp__lanes_begin(n, workers, w) + k;

            if (i >= ddp__lanes_begin(n, workers, w + 1))
                continue;
            rc = submit_sub(e, s, seq, first + i, begin, end);
            if (rc == 0 && end == e->graph->nodes)
                e->lane[(first + i) % e->spec.lanes].subs++;
        }
    return rc;
}

/* Nodes begin..end-1, of a stage, for each sub-batch of this rank.  To the
 * policy each stage is a step: a worker that has begun a sub-batch in one may
 * have to wait for others that are a stage behind. */
static int submit_stage(struct ddp__engine *e, const struct ddp__step *s,
                        int begin, int end)
{
    int64_t seq = atomic_fetch_add(&sequence, 1);
    int rc = 0;

    for (int i = 0; rc == 0 && i < s->subs; i += e->spec.lanes)
        rc = submit_round(e, s, seq, i + e->lane_begin,
                          own_lanes(e, s->subs - i), begin, end);
    return rc;
}

/* Nodes begin..end-1: all of a graph with several stages. */
static int submit_subs(struct ddp__engine *e, const struct ddp__step *s,
                       int begin, int end)
{
    const ddp_graph_t *g = e->graph;
    int rc;

    memset(e->grad_begun, 0,
           sizeof(*e->grad_begun) *
               (size_t)(e->spec.lanes * e->params->buckets));
    for (int k = 0; k < g->sums; k++) {
        struct ddp__total sum = {DDP__TOTAL_SUM, k};
        int next = ddp__graph_stage_end(g, k);

        if ((rc = submit_stage(e, s, begin, next)) < 0 ||
            (rc = submit_total(e, s, sum)) < 0)
            return rc;
        begin = next;
    }
    if ((rc = submit_stage(e, s, begin, end)) < 0)
        return rc;
    for (int i = 0; i < s->subs; i++)
        if (ddp__engine_has_lane(e, i % e->spec.lanes))
            e->flops += e->sample_flops * s->n[i];
    return 0;
}

int ddp__engine_step(struct ddp__engine *e, const struct ddp__step *s)
{
    double begin;
    int rc;

    if (e->submitted - e->begun >= e->spec.run_ahead &&
        (rc = ddp__engine_wait(e, e->submitted - e->spec.run_ahead, NULL)) < 0)
        return rc;
    if (s->update && e->ema && (rc = ddp__ema_begin(e->ema)) < 0)
        return rc;
    begin = ddp__now();
    if (e->submitted == e->begun)
        e->first_submit = begin;
    e->exchanged = 0;
    if ((rc = submit_subs(e, s, 0, e->graph->nodes)) < 0 ||
        (rc = submit_merges(e, s)) < 0)
        fail_step(e, s, rc);
    if ((rc = ddp__step_end(e, s, rc)) < 0)
        return rc;
    e->submitted++;
    e->submit_s += ddp__now() - begin;
    if (e->group.trace)
        ddp__trace_span(e->group.trace, DDP__TRACK_SUBMISSION, s->number, -1,
                        begin, ddp__now());
    return 0;
}

/* Count one more step as finished. */
static void count_finished(struct ddp__engine *e, int steps)
{
    ddp__lock_acquire(&e->lock);
    e->finished += steps;
    ddp__lock_release(&e->lock);
}

int ddp__engine_update(struct ddp__engine *e, const struct ddp__step *s)
{
    int rc = 0;

    if (e->ema && (rc = ddp__ema_begin(e->ema)) < 0)
        return rc;
    count_finished(e, -1);
    e->submitted--;
    if (ddp__step_reached_any(e) && (rc = ddp__step_updates(e, s, false)) < 0)
        ddp__task_group_fail(&e->group, s->number, rc, "submission", NULL);
    if ((rc = ddp__step_end(e, s, rc)) < 0)
        count_finished(e, 1);
    e->submitted++;
    return rc;
}

/* In place of what the sub-batches of a step would have left in lane 0. */
static int fill_sums(struct ddp__engine *e, const float *g, double divisor)
{
    const double stats[DDP__STATS] = {[DDP__STAT_DIVISOR] = divisor};
    struct ddp__lane *l = &e->lane[0];
    int rc = ddp__handle_fill(&l->stats, stats);

    memset(e->grad_begun, 0,
           sizeof(*e->grad_begun) *
               (size_t)(e->spec.lanes * e->params->buckets));
    for (int b = 0; b < e->params->buckets && rc == 0; b++) {
        if (e->reached[b])
            rc = ddp__handle_fill(&l->grad[b], g);
        e->grad_begun[b] = e->reached[b];
        g += e->params->bucket[b].len;
    }
    return rc;
}

int ddp__engine_apply(struct ddp__engine *e, const struct ddp__step *s,
                      const float *g, double divisor)
{
    int rc;

    if ((e->ema && (rc = ddp__ema_begin(e->ema)) < 0) ||
        (rc = fill_sums(e, g, divisor)) < 0)
        return rc;
    if (ddp__step_reached_any(e) && (rc = ddp__step_updates(e, s, false)) < 0)
        ddp__task_group_fail(&e->group, s->number, rc, "submission", NULL);
    if ((rc = ddp__step_end(e, s, rc)) == 0)
        e->submitted++;
    return rc;
}

int ddp__engine_infer(struct ddp__engine *e, int lane, int n,
                      struct ddp__task_group *group)
{
    const struct ddp__step s = {.subs = 1, .n = &n};
    const struct cursor c = {
        .e = e,
        .s = &s,
        .group = group,
        .sequence = atomic_fetch_add(&sequence, 1),
        .lane = lane,
        .n = n,
    };

    return submit_range(&c, 0, e->graph->nodes, (uint64_t)lane);
}

int ddp__engine_half(struct ddp__engine *e, const int *n, int subs,
                     bool backward)
{
    struct ddp__step s = {.n = n, .subs = subs};
    ddp_graph_t *g = e->graph;
    int rc;

    if (backward)
        rc = submit_subs(e, &s, g->forward_nodes, g->nodes);
    else
        rc = submit_subs(e, &s, 0, g->forward_nodes);
    for (int b = 0; rc == 0 && backward && b < e->params->buckets; b++)
        if (ddp__step_reached(e, b))
            rc = ddp__reduce_submit(e, &s,
                                    (struct ddp__total){DDP__TOTAL_BUCKET, b});
    if (rc == 0)
        return 0;
    ddp__task_group_fail(&e->group, 0, rc, "submission", NULL);
    return ddp__engine_wait_all(e);
}
