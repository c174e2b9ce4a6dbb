/* memory.c - check that a run fits into each memory before its first task
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU would block forever on memory that is never freed, and the kernel
 * kills a process that takes more than it may have, so check beforehand.  A
 * step holds: weights, accumulators, the optimizer's state, activations and
 * input of the sub-batches in flight, scratch.  If they do not fit, the check
 * tries fewer sub-batches in flight, then to have gradients and state of GPUs
 * in main memory; smaller sub-batches would change the result, so the user has
 * to choose them.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "data/dataset.h"
#include "engine/comm_room.h"
#include "engine/early.h"
#include "engine/footprint.h"
#include "engine/replay.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "train/memory.h"
#include "train/trainer.h"

static const double mib = 1 << 20;

static double total_need(const struct ddp_memory_plan *p)
{
    return p->weights + p->copies + p->gradients + p->state + p->activations +
           p->input + p->scratch;
}

/* The largest half, quarter, ... of the sub-batch that fits; 0: none does. */
static int smaller_sub_batch(const struct ddp_memory_plan *p, int sub_batch)
{
    double each = (p->activations + p->input) / sub_batch,
           fixed = total_need(p) - each * sub_batch;

    do
        sub_batch /= 2;
    while (sub_batch > 0 && fixed + each * sub_batch > p->have);
    return sub_batch;
}

/* Another sub_batch is the user's choice: kernels add gradients over all of its
 * samples, so the weights differ in their last bits, and with them the run. */
static int fail_memory(const struct ddp_memory_plan *p,
                       const struct ddp_trainer *t, const char *where,
                       const char *advice)
{
    int smaller = t->cfg.sync_bn ? 0 : smaller_sub_batch(p, t->cfg.sub_batch);
    char which[96] = "";

    if (smaller > 0)
        snprintf(which, sizeof(which),
                 " (sub_batch %d should fit, with other sums and so other "
                 "weights)",
                 smaller);
    return ddp__fail(DDP_ENOMEM,
                     "this needs %.0f MiB: %.0f of weights, %.0f of optimizer "
                     "state, %.0f of gradients, %.0f of activations and %.0f "
                     "of input for %d sub-batches of %d in flight, %.0f of "
                     "scratch; %s has %.0f: use a smaller %s%s",
                     total_need(p) / mib, (p->weights + p->copies) / mib,
                     p->state / mib, p->gradients / mib, p->activations / mib,
                     p->input / mib, p->in_flight, t->cfg.sub_batch,
                     p->scratch / mib, where, p->have / mib, advice, which);
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* Bytes that a step needs for a buffer of so many. */
static double room_of(const ddp_t *ddp, size_t size)
{
    return (double)(ddp->gpu_workers ? ddp__pool_size(size)
                                     : ddp__main_size(size));
}

/* Bytes of vectors as long as the buckets. */
static double buckets_size(const ddp_t *ddp, const struct ddp__params *p)
{
    double size = 0;

    for (int b = 0; b < p->buckets; b++)
        size += room_of(ddp, 4 * p->bucket[b].len);
    return size;
}

static double vectors_size(const struct ddp__engine *e)
{
    return buckets_size(e->ddp, e->params);
}

/* Of the weights of a teacher. */
static double teacher_size(const struct ddp__engine *e)
{
    const struct ddp__params *p = e->spec.graph.teach.params;

    return p ? buckets_size(e->ddp, p) : 0;
}

/* Bytes of the sums of a step, of which lane 0 has all. */
static double sums_size(const struct ddp__engine *e)
{
    double size = 0;

    for (int i = 0; i < e->graph->sums; i++)
        size += room_of(e->ddp, ddp__value_size(e->graph, e->graph->sum[i]));
    return size;
}

static double state_size(const struct ddp__engine *e)
{
    double size = 0;

    for (int b = 0; b < e->params->buckets; b++)
        size += room_of(e->ddp, e->state[b].size);
    return size;
}

/* Lanes that compute in a step, and sub-batches of one of them. */
static struct ddp__own_lanes used_lanes(const struct ddp_trainer *t)
{
    int lanes = t->cfg.lanes;

    return (struct ddp__own_lanes){.used = min(lanes, t->loader.subs),
                                   .rounds =
                                       (t->loader.subs + lanes - 1) / lanes,
                                   .staged = t->cfg.sync_bn};
}

/* Bytes of the input of a sub-batch. */
static double input_size(const struct ddp_trainer *t)
{
    return room_of(t->ddp, ddp__dataset_x_size(t->loader.data) *
                               (size_t)t->cfg.sub_batch);
}

/* Bytes of the copies of weights that kernels of main memory keep. */
static double kept_size(const struct ddp__engine *e)
{
    double size = 0;

    for (int i = 0; i < e->graph->nodes; i++)
        size += (double)ddp__call_kept(&e->graph->node[i]->call);
    return size;
}

/* Bytes of scratch that each CPU worker has. */
static double room_size(const struct ddp__engine *e, bool adds)
{
    double most = 0;

    for (int i = 0; i < e->graph->nodes; i++)
        most =
            fmax(most, (double)ddp__call_room(&e->graph->node[i]->call, adds));
    return most;
}

/* The needs of main memory with these lanes. */
static int memory_need(const struct ddp_trainer *t,
                       const struct ddp__own_lanes *l,
                       struct ddp_memory_plan *n)
{
    const struct ddp__engine *e = t->engine;
    double weights = vectors_size(e);
    struct ddp__footprint f = {0};
    int rc = ddp__footprint(e, l, &f);

    if (rc < 0)
        return rc;
    *n = (struct ddp_memory_plan){
        .weights = weights + teacher_size(e),
        .copies = kept_size(e),
        .gradients = f.gradients + sums_size(e),
        .state = state_size(e) + (t->cfg.ema_decay > 0 ? weights : 0),
        .activations = f.activations,
        .input = input_size(t) * l->in_flight,
        .scratch = room_size(e, l->rounds > 1) * t->ddp->cpu_workers,
        .in_flight = l->in_flight,
    };
    return 0;
}

/* Sub-batches are read ahead, if it was as far as the ring of each lane goes.
 * The sum over ranks comes into lane 0's accumulator. */
static int main_need(const struct ddp_trainer *t, int in_flight,
                     struct ddp_memory_plan *n)
{
    const struct ddp__engine *e = t->engine;
    struct ddp__own_lanes l = used_lanes(t);
    double room;
    int rc;

    l.begin = min(e->lane_begin, l.used);
    l.end = min(e->lane_end, l.used);
    l.in_flight = in_flight;
    if ((rc = memory_need(t, &l, n)) < 0 ||
        (rc = ddp__comm_room(e, t->loader.subs, &room)) < 0)
        return rc;
    if (t->ddp->gpu_workers && !t->ddp->devices.hybrid)
        n->gradients = n->activations = 0; /* the rest passes through */
    else
        n->state += ddp__early_size(e);
    if (ddp__comm_used(e) && (t->ddp->gpu_workers || e->lane_begin > 0))
        n->gradients += vectors_size(e);
    n->gradients += room;
    n->input *=
        (double)e->spec.ring * (e->lane_end - e->lane_begin) / in_flight;
    n->have = ddp__devices_main_memory();
    return 0;
}

/* Sub-batches that may be in memory at a time. */
static int most_in_flight(const struct ddp_trainer *t)
{
    int lanes = t->engine->lane_end - t->engine->lane_begin;
    int most = t->cfg.sync_bn ? min(lanes, t->loader.subs)
                              : min(lanes, t->ddp->workers);

    return most > 0 ? most : 1;
}

/* CPU workers that do not fit at the same time take turns, where the policy is
 * ours. */
static int check_main(struct ddp_trainer *t)
{
    int most = most_in_flight(t), rc;
    struct ddp_memory_plan n;

    for (int i = most; (rc = main_need(t, i, &n)) == 0; i--) {
        if (total_need(&n) <= n.have)
            break;
        if (t->cfg.sync_bn)
            return fail_memory(&n, t, "the machine",
                               "batch, or leave out sync_bn, which has all "
                               "sub-batches of a step in memory");
        if (i <= 1 || !ddp__sched_cap())
            return fail_memory(&n, t, "the machine",
                               "sub_batch, or fewer lanes or workers");
    }
    if (rc == 0 && n.in_flight < most)
        ddp__sched_limit_main(n.in_flight);
    n.wanted = most;
    t->memory = n;
    return rc;
}

/* Copies of half the size, for kernels. */
static double copies_size(const struct ddp_trainer *t, double weights)
{
    return t->cfg.dtype == DDP_F32 ? 0 : weights / 2;
}

static int replay(const struct ddp_trainer *t, int gpus, int in_flight,
                  struct ddp__replayed *r)
{
    const struct ddp__engine *e = t->engine;
    struct ddp__replay_plan plan = {.gpus = gpus, .lanes = used_lanes(t)};

    plan.lanes.begin = min(e->lane_begin, plan.lanes.used);
    plan.lanes.end = min(e->lane_end, plan.lanes.used);
    plan.lanes.in_flight = in_flight;
    return ddp__replay(e, &plan, r);
}

/* The needs of a GPU of several; each of its workers has scratch.  What StarPU
 * keeps for buffers of the same size it gives up if there is no other memory,
 * which takes time: a sub-batch that is alone has to do so. */
static int gpu_need(const struct ddp_trainer *t, int gpus, int in_flight,
                    struct ddp_memory_plan *n)
{
    const struct ddp__engine *e = t->engine;
    double weights = vectors_size(e), kept;
    struct ddp__replayed r;
    int rc = replay(t, gpus, in_flight, &r);

    if (rc < 0)
        return rc;
    *n = (struct ddp_memory_plan){
        .weights = weights + teacher_size(e),
        .copies = copies_size(t, weights),
        .gradients = r.gradients,
        .state = (state_size(e) + (e->ema ? weights : 0) + ddp__early_size(e)) /
                 gpus,
        .input = input_size(t) * in_flight,
        .scratch = (double)ddp__devices_scratch(t->ddp) *
                   ((t->ddp->gpu_workers + gpus - 1) / gpus),
        .in_flight = in_flight,
    };
    ddp__devices_memory(t->ddp, &n->have);
    n->activations =
        fmax(r.live - n->weights - n->gradients - n->state - n->input, 0);
    kept = r.held - (total_need(n) - n->copies - n->scratch);
    if (in_flight > 1 || total_need(n) + kept <= n->have)
        n->activations += kept;
    return 0;
}

/* What two tasks on whole vectors need at the same time, one that runs and one
 * whose data come: a merge has two sums, an update a sum and the state. */
static double desk_size(const struct ddp__engine *e)
{
    double first = 0, second = 0;

    for (int b = 0; b < e->params->buckets; b++) {
        double sum = (double)ddp__pool_size(4 * e->params->bucket[b].len);
        double both = sum + fmax(sum, (double)ddp__pool_size(e->state[b].size));

        second = fmax(second, fmin(first, both));
        first = fmax(first, both);
    }
    return first + second;
}

/* The last resort: gradients and state are in main memory but for those that a
 * task needs.  StarPU moves what was not used for longest; chunks of which some
 * buffers are in use stay, for which there is some room. */
static int gpu_least(const struct ddp_trainer *t, int gpus,
                     struct ddp_memory_plan *n)
{
    const double chunks = 2 * 32 * mib;
    double desk = desk_size(t->engine);
    struct ddp__replayed r;
    int rc = gpu_need(t, gpus, 1, n);

    if (rc < 0 || (rc = replay(t, gpus, 1, &r)) < 0)
        return rc;
    n->activations = r.others - n->weights - n->state - n->input + chunks;
    n->evicted = fmax(n->gradients + n->state - desk, 0);
    n->gradients = fmin(n->gradients, desk);
    n->state = 0;
    return 0;
}

/* Whether that is enough, and main memory has room for the rest. */
static bool may_evict(const struct ddp_trainer *t, int gpus,
                      struct ddp_memory_plan *n)
{
    struct ddp_memory_plan least, main;

    if (gpu_least(t, gpus, &least) < 0 || main_need(t, 1, &main) < 0 ||
        least.evicted == 0 || total_need(&least) > least.have ||
        total_need(&main) + least.evicted * gpus > main.have)
        return false;
    *n = least;
    return true;
}

/* Lanes move to GPUs that have nothing to do, unless one of these may not hold
 * the accumulators of all. */
static int check_moves(const struct ddp_trainer *t, int gpus, int in_flight)
{
    struct ddp_memory_plan n;
    int rc = gpus > 1 ? gpu_need(t, 1, in_flight, &n) : 0;

    if (rc == 0 && gpus > 1 && total_need(&n) > n.have)
        ddp__sched_stay();
    return rc;
}

static int check_gpus(struct ddp_trainer *t)
{
    const struct ddp__engine *e = t->engine;
    int gpus, i, lanes, most, rc, cap = ddp__sched_cap();
    double have;
    struct ddp_memory_plan n;

    gpus = ddp__devices_memory(t->ddp, &have);
    t->memory = (struct ddp_memory_plan){0};
    if (!gpus || have <= 0) /* unknown */
        return 0;
    lanes = (e->lane_end - e->lane_begin + gpus - 1) / gpus;
    lanes = lanes > 0 ? lanes : 1;
    most = min(lanes, (t->ddp->gpu_workers + gpus - 1) / gpus * cap);
    if (!cap) /* another scheduler may start all of them */
        most = lanes;
    if ((rc = gpu_need(t, gpus, most, &n)) == 0 && total_need(&n) > have)
        ddp__early_free(t->engine); /* before anything that takes longer */
    for (i = most; (rc = gpu_need(t, gpus, i, &n)) == 0; i--) {
        if (total_need(&n) <= have)
            break;
        if (cap && i > 1)
            continue;
        if ((t->engine->scarce = cap && may_evict(t, gpus, &n)))
            break;
        return fail_memory(&n, t, "a GPU",
                           "sub_batch, or fewer lanes, or more GPUs");
    }
    if (rc == 0 && i < most)
        ddp__sched_limit_gpu(i);
    n.wanted = most;
    t->memory = n;
    return rc < 0 ? rc : check_moves(t, gpus, i);
}

int ddp__memory_check(struct ddp_trainer *t)
{
    int rc = ddp__devices_simulated() ? 0 : check_main(t);

    return rc < 0 || !t->ddp->gpu_workers ? rc : check_gpus(t);
}

int ddp__memory_evaluate(struct ddp_trainer *t, const struct ddp__engine *e)
{
    double kept = kept_size(e);

    if (t->ddp->gpu_workers) /* the plan is of a GPU */
        return 0;
    t->memory.copies += kept - t->eval_copies;
    t->eval_copies = kept;
    if (t->memory.have <= 0 || total_need(&t->memory) <= t->memory.have)
        return 0;
    return fail_memory(&t->memory, t, "the machine",
                       "sub_batch, or fewer lanes or workers");
}

int ddp_trainer_memory(const ddp_trainer_t *t, struct ddp_memory_plan *p)
{
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    if (!p)
        return ddp__fail_null("p");
    *p = t->memory;
    return 0;
}
