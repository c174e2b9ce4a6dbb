/* engine.c - prepare a graph to run: handles, plans, accumulators
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "engine/early.h"
#include "engine/engine.h"
#include "engine/near.h"
#include "engine/lane_buffers.h"
#include "engine/lanes.h"
#include "engine/reduce.h"
#include "engine/shard.h"
#include "engine/slices.h"
#include "engine/step_calls.h"
#include "engine/strips.h"
#include "engine/update.h"
#include "graph/params_bind.h"
#include "runtime/cost.h"
#include "runtime/devices.h"
#include "runtime/nodes.h"
#include "runtime/pool.h"
#include "runtime/trace.h"

/* Number the inputs, and note which buckets get a gradient. */
static int note_values(struct ddp__engine *e)
{
    const ddp_graph_t *g = e->graph;

    e->input_of = calloc((size_t)g->values, sizeof(*e->input_of));
    e->input = calloc((size_t)g->values, sizeof(*e->input));
    if (!e->input_of || !e->input)
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    for (int i = 0; i < g->values; i++)
        if (g->value[i]->role == DDP__INPUT && g->value[i]->base->id == i) {
            e->input[e->inputs] = g->value[i];
            e->input_of[i] = e->inputs++;
        } else if (g->value[i]->role == DDP__GRAD) {
            e->reached[g->value[i]->bucket] = true;
        }
    for (int b = 0; b < e->params->buckets; b++)
        if (e->reached[b])
            e->lane_bytes += 4.0 * (double)e->params->bucket[b].len;
    return 0;
}

static int prepare_graph(struct ddp__engine *e)
{
    int n = e->graph->nodes, rc;
    struct ddp__call **c = calloc((size_t)n + 1, sizeof(*c));

    if (!c)
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    e->sample_flops = 0;
    for (int i = 0; i < n; i++) {
        c[i] = &e->graph->node[i]->call;
        e->sample_flops += ddp__call_flops(c[i], 1);
    }
    rc = ddp__calls_prepare(e->ddp, c, n);
    free(c);
    return rc;
}

/* Elements of a bucket's optimizer state. */
static size_t state_len(const struct ddp__engine *e, int b)
{
    return e->params->bucket[b].len *
           (size_t)ddp__optimizer_states(&e->optimizer);
}

/* The optimizer's own vectors start as zeros and live as long as the engine.
 * Buckets that are frozen have none. */
static int make_state(struct ddp__engine *e, int b)
{
    size_t size = state_len(e, b) * 4;

    if (!size || !e->updates[b].calls || !ddp__shard_keeps(e, b))
        return 0;
    if (!(e->state_memory[b] = ddp__pool_alloc(size)))
        return ddp__fail(DDP_ENOMEM, "out of memory for the optimizer's state");
    ddp__threads_zero(e->state_memory[b], size);
    ddp__handle_register(&e->state[b], e->state_memory[b], size);
    return 0;
}

static int make_update(struct ddp__engine *e)
{
    int rc = 0;

    e->optimizer = *e->spec.optimizer;
    rc = ddp__shard_new(e);
    for (int b = 0; rc == 0 && b < e->params->buckets; b++)
        if ((rc = ddp__updates_new(e, b)) == 0 &&
            (rc = ddp__strips_update_new(e, b)) == 0 &&
            (rc = make_state(e, b)) == 0)
            rc = ddp__sqnorm_prepare(e, b);
    ddp__handle_register(&e->norm, NULL, DDP__NORMS * sizeof(double));
    if (rc == 0)
        rc = ddp__early_new(e);
    if (rc == 0)
        rc = ddp__slices_new(e);
    if (rc == 0 && e->spec.ema_decay > 0)
        rc = ddp__ema_new(&e->ema, e->params, e->spec.ema_decay);
    return rc;
}

/* Each parameter may have one of its own. */
static size_t most_updates(const struct ddp__engine *e)
{
    return e->spec.rule ? (size_t)e->params->blocks * DDP_MAX_PARAMS : 0;
}

static int make_arrays(struct ddp__engine *e)
{
    size_t buckets = (size_t)e->params->buckets + 1;
    size_t lanes = (size_t)e->spec.lanes;

    e->lane = calloc(lanes, sizeof(*e->lane));
    e->grad_begun = calloc(lanes * buckets, sizeof(*e->grad_begun));
    e->state = calloc(buckets, sizeof(*e->state));
    e->state_memory = calloc(buckets, sizeof(*e->state_memory));
    e->merge_bucket = calloc(buckets, sizeof(*e->merge_bucket));
    e->merge_sum = calloc((size_t)e->graph->sums + 1, sizeof(*e->merge_sum));
    e->updates = calloc(buckets, sizeof(*e->updates));
    e->strips = calloc(buckets, sizeof(*e->strips));
    e->round = calloc(buckets, sizeof(*e->round));
    e->sqnorm = calloc(buckets, sizeof(*e->sqnorm));
    e->owner = calloc(buckets, sizeof(*e->owner));
    e->result = calloc((size_t)e->spec.run_ahead + 1, sizeof(*e->result));
    e->reached = calloc(buckets, sizeof(*e->reached));
    e->agreed = calloc((size_t)e->spec.run_ahead + 1, sizeof(*e->agreed));
    e->task_call = calloc((size_t)e->graph->nodes + most_updates(e) + buckets,
                          sizeof(*e->task_call));
    if (!e->lane || !e->grad_begun || !e->reached || !e->agreed || !e->state ||
        !e->state_memory || !e->merge_bucket || !e->merge_sum || !e->round ||
        !e->updates || !e->strips || !e->sqnorm || !e->owner || !e->result ||
        !e->task_call)
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    ddp__reduce_owners(e);
    return 0;
}

/* Whether every segment has a kind of worker that runs all of it. */
static bool can_run(const ddp_t *ddp, const ddp_graph_t *g)
{
    for (int k = 0; k < g->segments; k++) {
        uint32_t all = UINT32_MAX;

        for (int i = g->segment[k].begin; i < g->segment[k].end; i++)
            all &= ddp__call_where(ddp, &g->node[i]->call);
        if (!all)
            return false;
    }
    return true;
}

/* If GPUs cannot run all operations, each operation is a separate task, on data
 * in the layout that suits CPU workers. */
static int make_graph(struct ddp__engine *e, ddp_chain_t *chain)
{
    int rc;

    for (;;) {
        if ((rc = ddp__graph_new(&e->graph, chain, e->params, &e->spec.graph,
                                 false)) < 0 ||
            (rc = prepare_graph(e)) < 0 || can_run(e->ddp, e->graph))
            return rc;
        ddp__graph_free(e->graph);
        e->graph = NULL;
        e->spec.graph.segment_us = e->spec.graph.forward_us = 0;
        e->spec.graph.joined = false;
        e->spec.graph.on_gpus = false;
        e->spec.graph.channels = 0;
    }
}

static int bind_teacher(struct ddp__engine *e)
{
    struct ddp__teaching *k = &e->spec.graph.teach;

    if (!k->chain)
        return 0;
    if (!(k->params = ddp__params_of(k->chain)))
        return ddp_errcode();
    return ddp__params_bind(k->params, e->ddp, true);
}

static int make_engine(struct ddp__engine *e, ddp_chain_t *chain)
{
    int rc;

    if (!(e->params = ddp__params_of(chain)))
        return ddp_errcode();
    if ((rc = ddp__early_prepare(e)) < 0)
        return rc;
    e->buckets = e->params->buckets;
    if ((rc = bind_teacher(e)) < 0)
        return rc;
    if ((rc = ddp__params_bind(e->params, e->ddp, !e->spec.values_follow)) <
            0 ||
        (rc = make_graph(e, chain)) < 0 || (rc = make_arrays(e)) < 0 ||
        (rc = note_values(e)) < 0 || (rc = ddp__step_calls_new(e)) < 0)
        return rc;
    for (int l = e->spec.lanes - 1; l >= 0; l--) /* 0 may have another's */
        if ((l == 0 || ddp__engine_has_lane(e, l)) &&
            (rc = ddp__lane_new(e, &e->lane[l])) < 0)
            return rc;
    rc = e->spec.optimizer ? make_update(e) : 0;
    return rc < 0 ? rc : ddp__devices_ready(e->ddp);
}

/* The minimum duration of a task.  A task costs a CPU worker about 5 us, and
 * the host 20 us to launch on a GPU, which needs longer tasks for that; but
 * long tasks delay the reduction of the gradients. */
static double segment_us(const struct ddp__engine *e)
{
    if (e->ddp->segment_us >= 0)
        return e->ddp->segment_us;
    if (e->spec.graph.joined)
        return HUGE_VAL;
    if (!e->ddp->gpu_workers)
        return 50;
    return e->spec.lanes > 1 ? 1000 : 4000;
}

static void free_update(struct ddp__engine *e)
{
    ddp__early_free(e);
    ddp__slices_free(e);
    for (int b = 0; b < e->buckets; b++) {
        if (e->strips)
            ddp__strips_free(&e->strips[b]);
        if (e->updates)
            ddp__updates_free(&e->updates[b]);
        if (e->state && e->state_memory) {
            size_t size = e->state[b].size;

            ddp__handle_unregister(&e->state[b]);
            ddp__pool_free(e->state_memory[b], size);
        }
    }
    ddp__handle_unregister(&e->norm);
}

/* Tasks use all of it, so wait for them first; then handles are unregistered
 * before the memory that they describe is freed. */
static void end_engine(struct ddp__engine *e)
{
    ddp__task_group_wait(&e->group);
    for (int l = 0; e->lane && l < e->spec.lanes; l++)
        ddp__lane_free(e, &e->lane[l]);
    free_update(e);
    ddp__ema_free(e->ema);
    ddp__step_calls_free(e);
    ddp__graph_free(e->graph);
    ddp__host_unmap(&e->common);
    ddp__near_free(e);
    ddp__task_group_fini(&e->group);
    ddp__lock_fini(&e->lock);
    free(e->lane);
    free(e->input_of);
    free(e->input);
    free(e->task_call);
    free(e->grad_begun);
    free(e->reached);
    free(e->agreed);
    free(e->state);
    free(e->state_memory);
    free(e->merge_bucket);
    free(e->merge_sum);
    free(e->updates);
    free(e->strips);
    free(e->round);
    free(e->sqnorm);
    free(e->owner);
    if (e->checker != e->keeper)
        free(e->checker);
    free(e->keeper);
    free(e->result);
    ddp__context_unbind(e->ddp, &e->bound);
    *e = (struct ddp__engine){.ddp = NULL};
}

/* The context ends before the engine is freed. */
static void unbind_engine(struct ddp__bound *b)
{
    end_engine((struct ddp__engine *)b);
}

void ddp__engine_free(struct ddp__engine *e)
{
    if (e && e->ddp)
        end_engine(e);
    free(e);
}

int ddp__engine_lanes(const struct ddp__engine *e, int subs)
{
    return subs < e->spec.lanes ? subs : e->spec.lanes;
}

bool ddp__engine_has_lane(const struct ddp__engine *e, int lane)
{
    return lane >= e->lane_begin && lane < e->lane_end;
}

static void share_lanes(struct ddp__engine *e)
{
    bool divided = e->ranks > 1 && !e->spec.own;
    int ranks = divided ? e->ranks : 1,
        rank = divided ? e->ddp->net.wire.rank : 0;

    e->lane_begin = ddp__lanes_begin(e->spec.lanes, ranks, rank);
    e->lane_end = ddp__lanes_begin(e->spec.lanes, ranks, rank + 1);
}

/* So that the policy can tell their graphs apart. */
static atomic_int engines;

int ddp__engine_new(struct ddp__engine **out, ddp_t *ddp, ddp_chain_t *chain,
                    const struct ddp__engine_spec *spec)
{
    struct ddp__engine *e = calloc(1, sizeof(*e));
    int rc;

    if (!e)
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    e->ddp = ddp;
    e->failed = -1;
    e->number = 1 + atomic_fetch_add(&engines, 1);
    e->bound.unbind = unbind_engine;
    ddp__context_bind(ddp, &e->bound);
    e->spec = *spec;
    e->ranks = spec->shared ? ddp->net.wire.count : 1;
    if (spec->shared && ddp__nodes_count() > 1) {
        e->ranks = ddp__nodes_count();
        e->spec.own = e->simulated = true;
    }
    share_lanes(e);
    e->spec.graph.joined &= !ddp->gpu_workers && ddp->segment_us < 0;
    e->spec.graph.split &= e->spec.graph.joined && !ddp__devices_simulated();
    e->spec.graph.segment_us = segment_us(e);
    e->spec.graph.ddp = ddp;
    e->spec.graph.channels = ddp->channels;
    e->spec.graph.merged = e->spec.lanes > 1;
    e->spec.graph.on_gpus = ddp->accelerator && !ddp->devices.hybrid;
    e->spec.graph.folds = e->spec.graph.gates = !ddp->accelerator;
    e->spec.graph.defers = !ddp->accelerator;
    ddp__lock_init(&e->lock);
    if ((rc = ddp__task_group_init(&e->group, ddp, spec->run_ahead + 1)) < 0 ||
        (rc = make_engine(e, chain)) < 0) {
        ddp__engine_free(e);
        return rc;
    }
    e->group.lanes = e->lane_end - e->lane_begin;
    *out = e;
    return 0;
}

static void label_bucket(const struct ddp__engine *e, struct ddp__trace *t,
                         int b)
{
    ddp__trace_label(t, &e->params->bucket[b].handle, b);
    ddp__trace_label(t, &e->state[b], b);
    if (e->ema)
        ddp__trace_label(t, &e->ema->bucket[b].handle, b);
    for (int l = 0; l < e->spec.lanes; l++)
        if (e->lane[l].grad)
            ddp__trace_label(t, &e->lane[l].grad[b], b);
}

void ddp__engine_trace(struct ddp__engine *e, struct ddp__trace *t)
{
    e->group.trace = t;
    for (int b = 0; t && b < e->params->buckets; b++)
        label_bucket(e, t, b);
}

void ddp__engine_begin(struct ddp__engine *e, int64_t step)
{
    e->begun = e->submitted = e->finished = step;
}

int ddp__engine_check(const struct ddp__engine *e)
{
    return e->ddp ? 0
                  : ddp__fail(DDP_EINVAL, "ddp_finish() has been called: what "
                                          "was made before can only be freed");
}
