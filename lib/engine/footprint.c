/* footprint.c - what the sub-batches of a step hold in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A bucket of a lane has an accumulator from the first task that writes it
 * until it is merged into its neighbour's, which happens as soon as both are
 * done.  So while backward goes through a sub-batch, its activations are freed
 * and its gradients too: besides sums over lanes that are done, it holds the
 * buckets that it is at.  The policy runs lanes in their order and merges
 * first, so only sums of whole subtrees are left.  That is if a lane has one
 * sub-batch: a second one may wait until all have had a first.
 *
 * Where a graph has sums of a step, all sub-batches go through it together, and
 * each has its activations.
 *
 * With one sub-batch at a time this is what a step holds.  With several workers
 * it is the most: what exists at a time depends on when each worker is where.
 * What GPUs hold has a file of its own, replay.c.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/footprint.h"
#include "engine/lanes.h"
#include "runtime/pool.h"

/* A sub-batch's way through memory. */
struct path {
    const struct ddp__engine *e;
    const struct ddp__own_lanes *l;
    struct ddp__reach reach;
};

/* ---- where gradients are written ---------------------------------------- */

static void note_gradient(struct ddp__reach *r, const ddp_value_t *v, int k)
{
    if (!v || v->role != DDP__GRAD)
        return;
    if (r->last[v->bucket] < 0)
        r->first[v->bucket] = k;
    r->last[v->bucket] = k;
}

bool ddp__reach_new(struct ddp__reach *r, const struct ddp__engine *e)
{
    const ddp_graph_t *g = e->graph;
    size_t buckets = (size_t)e->params->buckets + 1;

    r->first = malloc(buckets * sizeof(*r->first));
    r->last = malloc(buckets * sizeof(*r->last));
    if (!r->first || !r->last)
        return false;
    for (int b = 0; b < e->params->buckets; b++)
        r->first[b] = r->last[b] = -1;
    for (int k = 0; k < g->segments; k++)
        for (int i = g->segment[k].begin; i < g->segment[k].end; i++)
            for (int b = 0; b < g->node[i]->call.buffers; b++)
                note_gradient(r, g->node[i]->buf[b], k);
    return true;
}

void ddp__reach_free(struct ddp__reach *r)
{
    free(r->first);
    free(r->last);
}

/* ---- a step ------------------------------------------------------------- */

/* Lanes that wait for each other have a bucket until all have passed the stage
 * that ends its gradients. */
static void extend_to_stages(const struct path *p)
{
    const ddp_graph_t *g = p->e->graph;

    for (int b = 0; b < p->e->params->buckets; b++)
        while (p->reach.last[b] >= 0 && p->reach.last[b] + 1 < g->segments &&
               !ddp__graph_ends_stage(g, g->segment[p->reach.last[b]].end - 1))
            p->reach.last[b]++;
}

/* Memory in use while `open` sub-batches, each with `arenas` bytes of arenas,
 * are at segment k: sums of a bucket before they have passed it, and after. */
static struct ddp__footprint hold(const struct path *p, double arenas, int k,
                                  int open, int before, int after)
{
    struct ddp__footprint now = {.activations = open * arenas};

    for (int b = 0; b < p->e->params->buckets; b++) {
        bool at = p->reach.first[b] <= k && k <= p->reach.last[b] &&
                  p->l->rounds == 1;
        int n = (k > p->reach.last[b] ? after : before) + (at ? open : 0);

        if (p->reach.last[b] >= 0)
            now.gradients +=
                n * (double)ddp__main_size(4 * p->e->params->bucket[b].len);
    }
    return now;
}

static int lanes_of(const struct ddp__own_lanes *l)
{
    return l->end - l->begin;
}

/* Sums of the first `lanes` lanes. */
static int sums_of(const struct ddp__own_lanes *l, int lanes)
{
    return ddp__lanes_sums(l->begin, l->begin + lanes, l->used);
}

/* Each lane that is open has, at each node on its way to the tree's root, a
 * neighbour that may be done; those that are spread evenly share the least of
 * that way. */
int ddp__footprint_sums(const struct ddp__own_lanes *l, int open)
{
    int lanes = lanes_of(l), depth = 0, most;

    while ((int64_t)open << depth < lanes)
        depth++;
    most = open * depth + sums_of(l, lanes) - 1;
    return most < lanes - open ? most : lanes - open;
}

static void note_most(struct ddp__footprint *most, struct ddp__footprint now)
{
    if (now.gradients + now.activations > most->gradients + most->activations)
        *most = now;
}

/* The most at segment k: of one sub-batch at a time, of lanes in their order;
 * of several. */
static void follow(const struct path *p, double arenas, int k,
                   struct ddp__footprint *most)
{
    const struct ddp__own_lanes *l = p->l;
    int lanes = lanes_of(l), n;

    if (l->staged) {
        note_most(most, hold(p, arenas, k, lanes, 0, 1));
        return;
    }
    for (int done = 0; done < lanes && l->rounds == 1; done++)
        note_most(most, hold(p, arenas, k, 1, sums_of(l, done),
                             sums_of(l, done + 1)));
    for (int open = l->rounds == 1 ? 2 : 1; open <= l->in_flight; open++) {
        n = l->rounds == 1 ? ddp__footprint_sums(l, open) : lanes;
        note_most(most, hold(p, arenas, k, open, n, n));
    }
}

/* An arena lives from the segment that writes it to the last that uses it. */
static struct ddp__footprint follow_all(const struct path *p)
{
    const ddp_graph_t *g = p->e->graph;
    struct ddp__footprint most = {0};
    double arenas = 0;

    for (int k = 0; k < g->segments; k++) {
        for (int i = 0; i < g->arenas; i++)
            if (g->arena[i].segment == k)
                arenas += (double)ddp__main_size(g->arena[i].size);
        follow(p, arenas, k, &most);
        for (int i = 0; i < g->arenas; i++)
            if (g->arena[i].last_use == k)
                arenas -= (double)ddp__main_size(g->arena[i].size);
    }
    return most;
}

int ddp__footprint(const struct ddp__engine *e, const struct ddp__own_lanes *l,
                   struct ddp__footprint *most)
{
    struct path p = {.e = e, .l = l};
    bool enough = ddp__reach_new(&p.reach, e);

    if (enough) {
        if (l->staged)
            extend_to_stages(&p);
        *most = follow_all(&p);
    }
    ddp__reach_free(&p.reach);
    return enough ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for a plan of it");
}
