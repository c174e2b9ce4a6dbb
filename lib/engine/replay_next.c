/* replay_next.c - of a replayed step: which task a GPU takes next, as the
 * policy does (claims.c) SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "engine/engine.h"
#include "engine/lanes.h"
#include "engine/replay_next.h"
#include "runtime/devices.h"

static bool is_backward(const struct ddp__replay_state *r,
                        const struct ddp__replay_slot *s)
{
    const ddp_graph_t *g = r->e->graph;

    return g->node[g->segment[s->segment].begin]->phase != DDP__FORWARD;
}

/* Backward passes come first, then lower lanes. */
static bool is_before(const struct ddp__replay_state *r,
                      const struct ddp__replay_slot *a,
                      const struct ddp__replay_slot *b)
{
    if (is_backward(r, a) != is_backward(r, b))
        return is_backward(r, a);
    return a->lane < b->lane;
}

/* Of the sub-batches that do not wait for the running task; NULL: none. */
static struct ddp__replay_slot *ready_slot(const struct ddp__replay_state *r,
                                           const struct ddp__replay_gpu *g)
{
    struct ddp__replay_slot *best = NULL;

    for (int i = 0; i < r->plan->lanes.in_flight; i++) {
        struct ddp__replay_slot *s = &g->slot[i];

        if (s->lane >= 0 && s != g->running.slot &&
            (!best || is_before(r, s, best)))
            best = s;
    }
    return best;
}

/* The first lane that nobody has claimed of those that a GPU begins with; -1:
 * none; and how many there are. */
static int first_lane(const struct ddp__replay_state *r, int gpu, int *left)
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
static double ends_in(const struct ddp__replay_state *r, int gpu, int more)
{
    for (int i = 0; i < r->plan->lanes.in_flight; i++)
        more += r->gpu[gpu].slot[i].lane >= 0;
    return more * r->lane_us;
}

/* One that a GPU begins with, or the last one of another if its sum will be
 * there earlier; -1: none. */
static int next_lane(const struct ddp__replay_state *r, int gpu)
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

static struct ddp__replay_slot *claim_lane(struct ddp__replay_state *r, int gpu)
{
    struct ddp__replay_gpu *g = &r->gpu[gpu];
    int lane = next_lane(r, gpu);

    for (int i = 0; lane >= 0 && i < r->plan->lanes.in_flight; i++)
        if (g->slot[i].lane < 0) {
            g->slot[i] =
                (struct ddp__replay_slot){.lane = lane, .segment = r->first};
            r->home[lane] = gpu;
            return &g->slot[i];
        }
    return NULL;
}

/* The first merge whose sums will have come by then; stride 0: there is none.
 */
static struct ddp__replay_job take_merge(struct ddp__replay_gpu *g, double then)
{
    struct ddp__replay_job m = {.slot = NULL};
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
struct ddp__replay_job ddp__replay_next(struct ddp__replay_state *r, int gpu)
{
    struct ddp__replay_gpu *g = &r->gpu[gpu];
    struct ddp__replay_job j = take_merge(g, r->now);

    if (j.stride)
        return j;
    if (!(j.slot = ready_slot(r, g)))
        j.slot = claim_lane(r, gpu);
    return j.slot ? j : take_merge(g, INFINITY);
}

bool ddp__replay_is_job(const struct ddp__replay_job *j)
{
    return j->slot || j->stride;
}

double ddp__replay_us(const struct ddp__replay_state *r,
                      const struct ddp__replay_job *j)
{
    return j->slot ? r->us[j->slot->segment]
                   : ddp__call_us(r->e->ddp, &r->e->merge_bucket[j->bucket], 1);
}

/* When something may change for a GPU that has nothing to do: the sums of a
 * merge come, or another GPU ends a task. */
double ddp__replay_next_change(const struct ddp__replay_state *r,
                               const struct ddp__replay_gpu *g)
{
    double at = INFINITY;

    for (int i = 0; i < g->merges; i++)
        at = fmin(at, g->merge[i].at);
    for (int i = 0; i < r->plan->gpus; i++)
        if (ddp__replay_is_job(&r->gpu[i].running))
            at = fmin(at, r->gpu[i].until);
    return at;
}
