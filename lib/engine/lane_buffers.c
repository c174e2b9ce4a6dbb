/* lane_buffers.c - what a lane has in memory: input, activations, gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/lane_buffers.h"

bool ddp__lanes_in_place(const struct ddp__engine *e)
{
    return e->ranks > 1 && !e->ddp->accelerator && e->lane_begin > 0 &&
           e->lane_begin < e->lane_end;
}

static bool has_gradients(const struct ddp__engine *e,
                          const struct ddp__lane *l)
{
    return l != e->lane || !ddp__lanes_in_place(e);
}

int ddp__lane_new(struct ddp__engine *e, struct ddp__lane *l)
{
    const ddp_graph_t *g = e->graph;

    l->arena = calloc((size_t)g->arenas + 1, sizeof(*l->arena));
    if (has_gradients(e, l))
        l->grad = calloc((size_t)e->params->buckets + 1, sizeof(*l->grad));
    else
        l->grad = e->lane[e->lane_begin].grad;
    l->input = calloc((size_t)(e->spec.ring * e->inputs), sizeof(*l->input));
    l->sum = calloc((size_t)g->sums + 1, sizeof(*l->sum));
    if (!l->arena || !l->grad || !l->input || !l->sum)
        return ddp__fail(DDP_ENOMEM, "out of memory for a lane");
    for (int i = 0; i < e->spec.ring * e->inputs; i++)
        ddp__handle_register(&l->input[i], NULL,
                             ddp__value_size(g, e->input[i % e->inputs]));
    for (int i = 0; i < g->arenas; i++)
        ddp__handle_register(&l->arena[i], NULL, g->arena[i].size);
    for (int b = 0; ddp_graph_training(g) && b < e->params->buckets; b++)
        if (!l->grad[b].h)
            ddp__handle_register(&l->grad[b], NULL,
                                 e->params->bucket[b].len * 4);
    for (int i = 0; i < g->sums; i++)
        ddp__handle_register(&l->sum[i], NULL, ddp__value_size(g, g->sum[i]));
    ddp__handle_register(&l->stats, l->stats_memory, sizeof(l->stats_memory));
    return 0;
}

void ddp__lane_free(struct ddp__engine *e, struct ddp__lane *l)
{
    for (int i = 0; l->arena && i < e->graph->arenas; i++)
        ddp__handle_unregister(&l->arena[i]);
    for (int i = 0; l->input && i < e->spec.ring * e->inputs; i++)
        ddp__handle_unregister(&l->input[i]);
    for (int b = 0; l->grad && has_gradients(e, l) && b < e->buckets; b++)
        ddp__handle_unregister(&l->grad[b]);
    for (int i = 0; l->sum && i < e->graph->sums; i++)
        ddp__handle_unregister(&l->sum[i]);
    ddp__handle_unregister(&l->stats);
    free(l->sum);
    free(l->arena);
    free(l->input);
    if (has_gradients(e, l))
        free(l->grad);
}

void ddp__engine_rest(struct ddp__engine *e)
{
    for (int l = e->lane_begin; l < e->lane_end; l++) {
        for (int i = 0; i < e->graph->arenas; i++)
            if (e->lane[l].arena[i].h)
                ddp__handle_drop(&e->lane[l].arena[i]);
        for (int i = 0; i < e->spec.ring * e->inputs; i++)
            ddp__handle_drop(&e->lane[l].input[i]);
        for (int b = 0; e->lane[l].grad[0].h && b < e->params->buckets; b++)
            ddp__handle_drop(&e->lane[l].grad[b]);
        for (int i = 0; i < e->graph->sums; i++)
            ddp__handle_drop(&e->lane[l].sum[i]);
    }
}

void ddp__engine_retry_memory(struct ddp__engine *e, int lane)
{
    struct ddp__lane *l = &e->lane[lane];

    if (!l->arena) /* another rank's */
        return;
    for (int i = 0; i < e->graph->arenas; i++)
        ddp__handle_drop_missing(&l->arena[i]);
    for (int i = 0; i < e->spec.ring * e->inputs; i++)
        ddp__handle_drop_missing(&l->input[i]);
    for (int b = 0; b < e->params->buckets; b++)
        ddp__handle_drop_missing(&l->grad[b]);
    for (int i = 0; i < e->graph->sums; i++)
        ddp__handle_drop_missing(&l->sum[i]);
}
