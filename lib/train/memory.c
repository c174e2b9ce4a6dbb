/* memory.c - check that a run fits into each memory before its first task
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU would block forever on memory that is never freed, and the kernel
 * kills a process that takes more than it may have, so check beforehand.  A
 * step holds: weights, accumulators, the optimizer's state, activations and
 * input of the sub-batches in flight, scratch.  If they do not fit, the check
 * tries fewer sub-batches in flight; smaller sub-batches would change the
 * result, so the user has to choose them.
 *
 * A lane has an accumulator from its first backward pass on, until it is merged
 * into its neighbour's.  The policy runs lanes in their order and merges first,
 * so of the lanes that are done only sums of whole subtrees are left.  That is
 * if a lane has one sub-batch: a second one may wait until all have had a
 * first. CPU workers do not merge in time where other processes take their
 * cores, and main memory, unlike a GPU's, has no other to move accumulators to.
 */
#include "config.h"

#include <stdio.h>

#include "base/error.h"
#include "data/dataset.h"
#include "graph/inspect.h"
#include "runtime/devices.h"
#include "train/memory.h"
#include "train/trainer.h"

static const double mib = 1 << 20;

static double total_need(const struct ddp_memory_plan *p)
{
    return p->weights + p->gradients + p->state + p->activations + p->input +
           p->scratch;
}

static int fail_memory(const struct ddp_memory_plan *p,
                       const struct ddp_trainer *t, const char *where,
                       const char *advice)
{
    return ddp__fail(DDP_ENOMEM,
                     "this needs %.0f MiB: %.0f of weights, %.0f of optimizer "
                     "state, %.0f of gradients, %.0f of activations and %.0f "
                     "of input for %d sub-batches of %d in flight, %.0f of "
                     "scratch; %s has %.0f: use a smaller sub_batch, or %s",
                     total_need(p) / mib, p->weights / mib, p->state / mib,
                     p->gradients / mib, p->activations / mib, p->input / mib,
                     p->in_flight, t->cfg.sub_batch, p->scratch / mib, where,
                     p->have / mib, advice);
}

/* Sub-batches of a lane in a step. */
static int rounds_of(const struct ddp_trainer *t)
{
    return (t->loader.subs + t->cfg.lanes - 1) / t->cfg.lanes;
}

static double state_size(const struct ddp__engine *e)
{
    double size = 0;

    for (int b = 0; b < e->params->buckets; b++)
        size += (double)e->state[b].size;
    return size;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* On the way from the tree's root to a leaf that is in flight, each node has
 * another child, whose subtree may be done: log2(lanes) sums.  Leaves that are
 * spread evenly share the least of that way. */
int ddp__memory_accumulators(int lanes, int in_flight, int rounds)
{
    int depth = 0;

    if (rounds > 1)
        return lanes;
    while ((int64_t)in_flight << depth < lanes)
        depth++;
    return min(lanes, in_flight * (1 + depth));
}

/* The needs of a memory with this many accumulators and sub-batches in
 * flight. */
static struct ddp_memory_plan memory_need(const struct ddp_trainer *t,
                                          int accumulators, int in_flight)
{
    const struct ddp__engine *e = t->engine;
    double weights = 4.0 * (double)e->params->held;
    double x = (double)ddp__dataset_x_size(t->loader.data) * t->cfg.sub_batch;

    return (struct ddp_memory_plan){
        .weights = weights,
        .gradients = weights * accumulators,
        .state = state_size(e) + (t->cfg.ema_decay > 0 ? weights : 0),
        .activations = (double)ddp__graph_peak(e->graph) * in_flight,
        .input = x * in_flight,
        .in_flight = in_flight,
    };
}

static struct ddp_memory_plan main_need(const struct ddp_trainer *t,
                                        int in_flight)
{
    struct ddp_memory_plan n = memory_need(t, t->cfg.lanes, in_flight);

    if (t->ddp->gpu_workers && !t->ddp->devices.hybrid)
        n.gradients = n.activations = 0; /* the rest passes through */
    n.input *= (double)t->engine->spec.ring * t->cfg.lanes / in_flight;
    n.have = ddp__devices_main_memory();
    return n;
}

/* CPU workers that do not fit at the same time take turns, where the policy is
 * ours. */
static int check_main(struct ddp_trainer *t)
{
    int most = min(t->cfg.lanes, t->ddp->workers);
    struct ddp_memory_plan n = main_need(t, most);

    for (int i = most; total_need(&n) > n.have; n = main_need(t, --i))
        if (i <= 1 || !ddp__sched_cap())
            return fail_memory(&n, t, "the machine", "fewer lanes or workers");
    if (n.in_flight < most)
        ddp__sched_limit_main(n.in_flight);
    n.wanted = most;
    t->memory = n;
    return 0;
}

/* The needs of one GPU: the accumulators of its lanes, and one that arrives
 * from another GPU to be merged; each of its workers has scratch. */
static struct ddp_memory_plan gpu_need(const struct ddp_trainer *t, int gpus,
                                       int lanes, int in_flight)
{
    int all =
        ddp__memory_accumulators(lanes, in_flight, rounds_of(t)) + (gpus > 1);
    struct ddp_memory_plan n = memory_need(t, all, in_flight);

    ddp__devices_memory(t->ddp, &n.have);
    n.scratch = (double)ddp__devices_scratch(t->ddp) *
                ((t->ddp->gpu_workers + gpus - 1) / gpus);
    n.state /= gpus;
    if (t->cfg.dtype != DDP_F32)
        n.weights *= 1.5; /* copies of half the size */
    return n;
}

static int check_gpus(struct ddp_trainer *t)
{
    int gpus, i, lanes, most, cap = ddp__sched_cap();
    double have;
    struct ddp_memory_plan n;

    gpus = ddp__devices_memory(t->ddp, &have);
    t->memory = (struct ddp_memory_plan){0};
    if (!gpus || have <= 0) /* unknown */
        return 0;
    lanes = (t->cfg.lanes + gpus - 1) / gpus;
    most = min(lanes, (t->ddp->gpu_workers + gpus - 1) / gpus * cap);
    if (!cap) /* another scheduler may start all of them */
        most = lanes;
    n = gpu_need(t, gpus, lanes, most);
    for (i = most; total_need(&n) > have; n = gpu_need(t, gpus, lanes, --i))
        if (cap <= 1 || i <= 1)
            return fail_memory(&n, t, "a GPU", "fewer lanes, or more GPUs");
    if (i < most)
        ddp__sched_limit(i);
    n.wanted = most;
    t->memory = n;
    return 0;
}

int ddp__memory_check(struct ddp_trainer *t)
{
    int rc = ddp__devices_simulated() ? 0 : check_main(t);

    return rc < 0 || !t->ddp->gpu_workers ? rc : check_gpus(t);
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
