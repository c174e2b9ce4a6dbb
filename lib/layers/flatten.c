/* flatten.c - (h, w, c) as a vector: the same memory under another shape
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "graph/value.h"

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    (void)l;
    *y = (struct ddp_shape){1, 1, x.h * x.w * x.c};
    return 0;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_shape s = {1, 1, x->shape.h * x->shape.w * x->shape.c};
    ddp_value_t *y = ddp__value_alias(g, x, s);

    return y ? ddp_graph_record(
                   g, &(struct ddp_record){.layer = l, .x = x, .y = y})
             : NULL;
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    return r->x->needs_gradient ? ddp__value_alias(g, dy, r->x->shape) : NULL;
}

static const struct ddp_layer_ops ops = {
    .kind = "flatten",
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

ddp_layer_t *ddp_flatten_new(void)
{
    return ddp_layer_new(sizeof(ddp_layer_t), &ops);
}
