/* dropout.c - dropout of values, and of whole samples (stochastic depth)
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "graph/graph.h"

struct dropout {
    ddp_layer_t layer;
    float p;
    bool whole_sample;
};

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

/* Forward and backward are one operation, because the keys determine the
 * mask. */
static ddp_value_t *mask(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x,
                         uint32_t layer)
{
    struct dropout *d = (struct dropout *)l;
    struct ddp__call call = {.op = DDP__OP_DROPOUT,
                             .dropout = {d->p, d->whole_sample, layer}};
    ddp_value_t *y = ddp__value_like(g, x->shape);

    ddp__emit(g, &call,
              DDP__VALUES([DDP__DROPOUT_X] = x, [DDP__DROPOUT_IDS] = g->ids,
                          [DDP__DROPOUT_Y] = y));
    return y;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_record r = {.layer = l, .x = x, .tag = (int)g->masks++};

    if (!ddp_graph_training(g) || ((struct dropout *)l)->p == 0)
        return x;
    r.y = mask(l, g, x, (uint32_t)r.tag);
    return r.y ? ddp_graph_record(g, &r) : NULL;
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    return r->x->needs_gradient ? mask(l, g, dy, (uint32_t)r->tag) : NULL;
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    o[0] = (struct ddp_option){"p", ((const struct dropout *)l)->p, NULL};
    return 1;
}

static const struct ddp_layer_ops dropout_ops = {
    .kind = "dropout",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

static const struct ddp_layer_ops depth_ops = {
    .kind = "stochastic_depth",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

static ddp_layer_t *dropout_new(float p, bool whole_sample)
{
    const struct ddp_layer_ops *ops = whole_sample ? &depth_ops : &dropout_ops;
    struct dropout *d;

    if (!(p >= 0 && p < 1)) {
        ddp__fail(DDP_EINVAL, "%s: probability %g, expected 0 <= p < 1",
                  ops->kind, (double)p);
        return NULL;
    }
    if (!(d = (struct dropout *)ddp_layer_new(sizeof(*d), ops)))
        return NULL;
    d->p = p;
    d->whole_sample = whole_sample;
    return &d->layer;
}

ddp_layer_t *ddp_dropout_new(float p)
{
    return dropout_new(p, false);
}

ddp_layer_t *ddp_stochastic_depth_new(float p)
{
    return dropout_new(p, true);
}
