/* channel_scale.c - y = x times gate(x), the squeeze-excite product
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/pass.h"
#include "layers/batch_norm.h"

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    int rc;

    if ((rc = ddp__layer_shape(l->child[0], x, y)) < 0)
        return rc;
    if (y->h != 1 || y->w != 1 || y->c != x.c)
        return ddp__fail(
            DDP_ESHAPE,
            "channel_scale: the gate gives (%d, %d, %d), expected (1, 1, %d)",
            y->h, y->w, y->c, x.c);
    *y = x;
    return 0;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_record r = {.layer = l, .x = x, .begin = g->records};

    if (!(r.saved = ddp__child_forward(l, 0, g, x)))
        return NULL;
    r.y = ddp__value_like(g, x->shape);
    ddp__emit(g, &(struct ddp__call){.op = DDP__OP_SCALE_FWD},
              DDP__VALUES([DDP__SCALE_FWD_X] = x, [DDP__SCALE_FWD_S] = r.saved,
                          [DDP__SCALE_FWD_Y] = r.y));
    return r.y ? ddp_graph_record(g, &r) : NULL;
}

/* Whether the gate's gradient follows from y as well as from x: the sum of
 * dy x, where x is y / s, and where s is 0, the gate's slope is 0 too.  Then x,
 * as large as y, need not be kept; y is input of what follows, and is. */
static bool follows_from_y(const ddp_graph_t *g, const struct ddp_record *r)
{
    for (int i = r->begin; i < r->end; i++)
        if (g->record[i].y == r->saved && (g->record[i].act == DDP_SIGMOID ||
                                           g->record[i].act == DDP_HARDSIGMOID))
            return true;
    return false;
}

/* Whether the gate begins with the means of whole images, and of x nothing but
 * these, the gate's factor and the norm that x comes from is computed. */
static bool is_gate_of_norm(const ddp_graph_t *g, const struct ddp_record *r)
{
    bool means = false;
    int uses = 0;

    for (int i = 0; i < g->nodes; i++) {
        const struct ddp__node *n = g->node[i];

        for (int b = 0; b < n->call.buffers; b++)
            uses += n->buf[b] && n->buf[b]->base == r->x->base;
        means |= n->call.op == DDP__OP_MEAN_POOL_FWD && n->call.pool.adaptive &&
                 n->buf[DDP__MEAN_POOL_FWD_X] == r->x &&
                 n->buf[DDP__MEAN_POOL_FWD_Y] == g->record[r->begin].y &&
                 g->record[r->begin].y->shape.h == 1 &&
                 g->record[r->begin].y->shape.w == 1;
    }
    return means && uses == 3;
}

/* Whether the norm before this one multiplies dy by the factors and adds the
 * gradient of the means: no gradient of x is in memory then. */
static bool may_gate(const ddp_graph_t *g, const struct ddp_record *r)
{
    return r->begin > 0 && r->begin < r->end && r->x->needs_gradient &&
           g->record[r->begin - 1].y == r->x &&
           ddp__norm_gates(g, &g->record[r->begin - 1]) &&
           g->record[r->begin].begin == r->begin && is_gate_of_norm(g, r);
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    bool gates = may_gate(g, r);
    ddp_value_t *dx = gates ? NULL : ddp__value_like(g, r->x->shape);
    ddp_value_t *ds = ddp__value_like(g, r->saved->shape);
    struct ddp__call call = {.op = DDP__OP_SCALE_BWD,
                             .scaled = follows_from_y(g, r)};

    (void)l;
    ddp__emit(
        g, &call,
        DDP__VALUES([DDP__SCALE_BWD_X] = call.scaled ? r->y : r->x,
                    [DDP__SCALE_BWD_S] = r->saved, [DDP__SCALE_BWD_DY] = dy,
                    [DDP__SCALE_BWD_DX] = dx, [DDP__SCALE_BWD_DS] = ds));
    if (gates) {
        ds = ddp__backward_range(g, r->begin + 1, r->end, ds);
        g->gate = (struct ddp__gate){r->saved, ds};
        return dy;
    }
    ds = ddp__backward_range(g, r->begin, r->end, ds);
    return r->x->needs_gradient ? ddp__value_sum(g, dx, ds, dy) : NULL;
}

static const struct ddp_layer_ops ops = {
    .kind = "channel_scale",
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

ddp_layer_t *ddp_channel_scale_new(ddp_layer_t *gate)
{
    return ddp__composite_new(sizeof(ddp_layer_t), &ops, 1, &gate);
}
