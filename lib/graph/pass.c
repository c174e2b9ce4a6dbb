/* pass.c - forward through layers, backward through what they recorded
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/pass.h"

/* Whether a gradient of r->y is needed: for x, for the layer's parameters, or
 * inside the layer. */
static bool needs_gradient(const ddp_graph_t *g, const struct ddp_record *r)
{
    bool any = r->x->needs_gradient || r->y->needs_gradient ||
               ddp__graph_trains(g, r->layer) ||
               (r->residual && r->residual->needs_gradient);

    for (int i = r->begin; r->layer->children && i < g->records; i++)
        any = any || g->record[i].y->needs_gradient;
    return any;
}

ddp_value_t *ddp_graph_record(ddp_graph_t *g, const struct ddp_record *r)
{
    if (g->rc < 0 || !r->y)
        return NULL;
    if ((g->rc = ddp__array_grow((void **)&g->record, g->records,
                                 sizeof(*g->record))) < 0)
        return NULL;
    r->y->needs_gradient = ddp_graph_training(g) && needs_gradient(g, r);
    g->record[g->records] = *r;
    g->record[g->records].end = g->records;
    if (r->layer->children == 0)
        g->record[g->records].begin = g->records;
    g->records++;
    return r->y;
}

ddp_value_t *ddp__backward_range(ddp_graph_t *g, int begin, int end,
                                 ddp_value_t *dy)
{
    while (end > begin && dy && g->rc == 0) {
        const struct ddp_record r = g->record[end - 1];

        g->phase = DDP__BACKWARD_X;
        dy = r.layer->ops->backward(r.layer, g, &r, dy);
        if (!dy && g->rc == 0 && r.x->needs_gradient)
            g->rc = ddp__fail(DDP_EINVAL,
                              "%s: backward returned no gradient, and that of "
                              "its input is needed",
                              r.layer->ops->kind);
        end = r.begin;
    }
    return g->rc < 0 ? NULL : dy;
}

/* ---- children ----------------------------------------------------------- */

/* How many elements of a layer's parameters are trained. */
static size_t count_trained(const ddp_graph_t *g, const ddp_layer_t *l)
{
    const struct ddp__param_block *b;
    size_t n = 0;

    if (l->param_block < 0)
        return 0;
    b = &g->params->block[l->param_block];
    for (int i = 0; i < b->params; i++)
        if (b->param[i].role != DDP_RUNNING)
            n += ddp__param_len(&b->param[i]);
    return n;
}

static int keep_span(ddp_graph_t *g, ddp_layer_t *l, const ddp_value_t *x,
                     const ddp_value_t *y, int first)
{
    struct ddp__span_of_layer *s;

    if (!g->inspect || l->children || !y)
        return g->rc;
    if ((g->rc = ddp__array_grow((void **)&g->span, g->spans,
                                 sizeof(*g->span))) < 0)
        return g->rc;
    s = &g->span[g->spans++];
    memset(s, 0, sizeof(*s));
    memcpy(s->info.name, g->path, sizeof(s->info.name));
    s->info.kind = l->ops->kind;
    s->info.in = x->shape;
    s->info.out = y->shape;
    s->info.flops = l->ops->flops ? l->ops->flops(l, x->shape) : 0;
    s->info.training_only = g->aux > 0;
    s->info.options = ddp__layer_options(l, s->info.option);
    if (s->info.options < 0)
        return g->rc = s->info.options;
    s->first_value = first;
    s->end_value = g->values;
    s->info.params = count_trained(g, l);
    return 0;
}

ddp_value_t *ddp__layer_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_shape want;
    ddp_value_t *y;
    int first = g->values, rc;

    if (g->rc < 0 || !x)
        return NULL;
    if ((rc = ddp__layer_shape(l, x->shape, &want)) < 0) {
        g->rc = rc;
        return NULL;
    }
    if (!(y = l->ops->forward(l, g, x)) && g->rc == 0)
        g->rc = ddp__fail(DDP_EINVAL, "%s (%s): forward returned no value",
                          g->path, l->ops->kind);
    return keep_span(g, l, x, y, first) < 0 ? NULL : y;
}

ddp_value_t *ddp__child_forward(ddp_layer_t *l, int i, ddp_graph_t *g,
                                ddp_value_t *x)
{
    size_t cut = ddp__path_push(g->path, sizeof(g->path), l, i);
    ddp_value_t *y = ddp__layer_forward(l->child[i], g, x);

    g->path[cut] = '\0';
    return y;
}
