/* replay_sums.c - of a replayed step: where sums are, and their merges
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "engine/engine.h"
#include "engine/reduce.h"
#include "engine/replay_sums.h"
#include "runtime/pool.h"

void ddp__replay_take(struct ddp__replay_gpu *g, size_t size)
{
    ddp__gpu_memory_take(&g->memory, size);
    g->most_others = fmax(g->most_others, g->memory.live - g->gradients);
}

size_t ddp__replay_sum_size(const struct ddp__replay_state *r, int b)
{
    return 4 * r->e->params->bucket[b].len;
}

static uint32_t *where_sum(const struct ddp__replay_state *r, int lane, int b)
{
    return &r->there[lane * r->e->params->buckets + b];
}

void ddp__replay_take_sum(struct ddp__replay_state *r, int gpu, int lane, int b)
{
    uint32_t *there = where_sum(r, lane, b);
    struct ddp__replay_gpu *g = &r->gpu[gpu];

    if (*there >> gpu & 1)
        return;
    *there |= UINT32_C(1) << gpu;
    g->gradients += (double)ddp__pool_size(ddp__replay_sum_size(r, b));
    g->most_gradients = fmax(g->most_gradients, g->gradients);
    ddp__replay_take(g, ddp__replay_sum_size(r, b));
}

/* On all GPUs that have had it. */
void ddp__replay_give_sum(struct ddp__replay_state *r, int lane, int b)
{
    uint32_t *there = where_sum(r, lane, b);

    for (int i = 0; i < r->plan->gpus; i++)
        if (*there >> i & 1) {
            ddp__gpu_memory_give(&r->gpu[i].memory, ddp__replay_sum_size(r, b));
            r->gpu[i].gradients -=
                (double)ddp__pool_size(ddp__replay_sum_size(r, b));
        }
    *there = 0;
}

int ddp__replay_owner(const struct ddp__replay_state *r, int b)
{
    return r->e->owner[b] % r->plan->gpus;
}

int *ddp__replay_at(const struct ddp__replay_state *r, int lane, int b)
{
    return &r->at[lane * r->e->params->buckets + b];
}

/* When the sum arrives on a GPU, if it is sent now. */
static double send_sum(struct ddp__replay_state *r, int gpu, int lane, int b)
{
    struct ddp__replay_gpu *to = &r->gpu[gpu],
                           *from = &r->gpu[*ddp__replay_at(r, lane, b)];
    double begin = fmax(r->now, fmax(to->got, from->sent));

    ddp__replay_take_sum(r, gpu, lane, b);
    if (to == from)
        return r->now;
    return to->got = from->sent =
               begin + (double)ddp__replay_sum_size(r, b) / r->link;
}

/* Its data are fetched at once. */
static void add_merge(struct ddp__replay_state *r, struct ddp__replay_job m)
{
    int lane = ddp__reduce_place(r->e, m.bucket,
                                 &(struct ddp__merge){.to = m.to,
                                                      .from = m.from,
                                                      .stride = m.from - m.to});
    int at = *ddp__replay_at(r, m.to, m.bucket);
    int gpu = at == *ddp__replay_at(r, m.from, m.bucket) ? at
              : lane >= 0                                ? r->home[lane]
                          : ddp__replay_owner(r, m.bucket);
    struct ddp__replay_gpu *g = &r->gpu[gpu];

    m.at = send_sum(r, gpu, m.to, m.bucket);
    m.at = fmax(m.at, send_sum(r, gpu, m.from, m.bucket));
    g->merge[g->merges++] = m;
}

/* A block of `width` lanes is summed.  Merge it with its neighbour when that
 * is, too, if there is one, and all of both are this rank's. */
void ddp__replay_add_block(struct ddp__replay_state *r, int b, int lane,
                           int width)
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
        add_merge(r, (struct ddp__replay_job){
                         .bucket = b, .to = to, .from = from, .stride = width});
}
