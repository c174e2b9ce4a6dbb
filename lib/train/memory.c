/* memory.c - check that a run fits into each memory before its first task
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU would block forever on memory that is never freed, so check
 * beforehand.  A step holds: weights, accumulators, the optimizer's state,
 * activations and input of the sub-batches in flight, scratch.  If they do not
 * fit, the check tries fewer sub-batches in flight; smaller sub-batches would
 * change the result, so the user has to choose them.
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
#include <unistd.h>

#include "base/error.h"
#include "data/dataset.h"
#include "graph/inspect.h"
#include "runtime/devices.h"
#include "train/memory.h"
#include "train/trainer.h"

/* In MiB. */
struct need {
    double weights, gradients, state, activations, input, scratch;
    int in_flight;
};

static double total_need(const struct need *n)
{
    return n->weights + n->gradients + n->state + n->activations + n->input +
           n->scratch;
}

static int fail_memory(const struct need *n, const struct ddp_trainer *t,
                       const char *where, double have, const char *advice)
{
    return ddp__fail(DDP_ENOMEM,
                     "this needs %.0f MiB: %.0f of weights, %.0f of optimizer "
                     "state, %.0f of gradients, %.0f of activations and %.0f "
                     "of input for %d sub-batches of %d in flight, %.0f of "
                     "scratch; %s has %.0f: use a smaller sub_batch, or %s",
                     total_need(n), n->weights, n->state, n->gradients,
                     n->activations, n->input, n->in_flight, t->cfg.sub_batch,
                     n->scratch, where, have, advice);
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
static struct need memory_need(const struct ddp_trainer *t, int accumulators,
                               int in_flight)
{
    const struct ddp__engine *e = t->engine;
    double mib = 1 << 20, weights = 4.0 * (double)e->params->held;
    double x = (double)ddp__dataset_x_size(t->loader.data) * t->cfg.sub_batch;

    return (struct need){
        .weights = weights / mib,
        .gradients = weights * accumulators / mib,
        .state = (state_size(e) + (t->cfg.ema_decay > 0 ? weights : 0)) / mib,
        .activations = (double)ddp__graph_peak(e->graph) * in_flight / mib,
        .input = x * in_flight / mib,
        .in_flight = in_flight,
    };
}

static int check_main(const struct ddp_trainer *t)
{
    double have = (double)sysconf(_SC_PHYS_PAGES) *
                  (double)sysconf(_SC_PAGE_SIZE) / (1 << 20);
    bool gpus = t->ddp->gpu_workers && !t->ddp->devices.hybrid;
    struct need n =
        memory_need(t, t->cfg.lanes, min(t->cfg.lanes, t->ddp->workers));

    if (gpus) /* weights, state and input pass through */
        n.gradients = n.activations = 0;
    n.input *= (double)t->engine->spec.ring * t->cfg.lanes / n.in_flight;
    return total_need(&n) <= have ? 0
                                  : fail_memory(&n, t, "the machine", have,
                                                "fewer lanes or workers");
}

/* The needs of one GPU: the accumulators of its lanes, and one that arrives
 * from another GPU to be merged; each of its workers has scratch. */
static struct need gpu_need(const struct ddp_trainer *t, int gpus, int lanes,
                            int in_flight)
{
    int all =
        ddp__memory_accumulators(lanes, in_flight, rounds_of(t)) + (gpus > 1);
    struct need n = memory_need(t, all, in_flight);

    n.scratch = (double)ddp__devices_scratch(t->ddp) / (1 << 20) *
                ((t->ddp->gpu_workers + gpus - 1) / gpus);
    n.state /= gpus;
    if (t->cfg.dtype != DDP_F32)
        n.weights *= 1.5; /* copies of half the size */
    return n;
}

static int check_gpus(const struct ddp_trainer *t)
{
    int gpus, i, lanes, most, cap = ddp__sched_cap();
    double have;
    struct need n;

    gpus = ddp__devices_memory(t->ddp, &have);
    have /= 1 << 20;
    if (!gpus || have <= 0) /* unknown */
        return 0;
    lanes = (t->cfg.lanes + gpus - 1) / gpus;
    most = min(lanes, (t->ddp->gpu_workers + gpus - 1) / gpus * cap);
    if (!cap) /* another scheduler may start all of them */
        most = lanes;
    n = gpu_need(t, gpus, lanes, most);
    for (i = most; total_need(&n) > have; n = gpu_need(t, gpus, lanes, --i))
        if (cap <= 1 || i <= 1)
            return fail_memory(&n, t, "a GPU", have,
                               "fewer lanes, or more GPUs");
    if (i < most)
        ddp__sched_limit(i);
    return 0;
}

int ddp__memory_check(const struct ddp_trainer *t)
{
    int rc = ddp__devices_simulated() ? 0 : check_main(t);

    return rc < 0 || !t->ddp->gpu_workers ? rc : check_gpus(t);
}
