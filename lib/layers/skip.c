/* skip.c - y = branch(x) + shortcut(x), the residual connection
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/pass.h"

enum { BRANCH, SHORTCUT };

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    struct ddp_shape s = x;
    int rc;

    if ((rc = ddp__layer_shape(l->child[BRANCH], x, y)) < 0)
        return rc;
    if (l->children > SHORTCUT &&
        (rc = ddp__layer_shape(l->child[SHORTCUT], x, &s)) < 0)
        return rc;
    if (s.h != y->h || s.w != y->w || s.c != y->c)
        return ddp__fail(DDP_ESHAPE,
                         "skip: the branch gives (%d, %d, %d), the shortcut "
                         "(%d, %d, %d)",
                         y->h, y->w, y->c, s.h, s.w, s.c);
    return 0;
}

/* The branch's last layer adds the shortcut where it can. */
static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_record r = {
        .layer = l, .x = x, .begin = g->records, .act = ddp__take_act(g)};
    unsigned fuses = ddp__layer_fuses(l->child[BRANCH]);
    ddp_value_t *s = x;

    if (l->children > SHORTCUT)
        s = ddp__child_forward(l, SHORTCUT, g, x);
    r.split[0] = g->records;
    if (s && (fuses & DDP_FUSE_RESIDUAL) && (fuses & DDP_FUSE_ACT(r.act))) {
        r.residual = g->fuse_residual = s;
        g->fuse_act = r.act;
        r.y = ddp__child_forward(l, BRANCH, g, x);
    } else {
        r.y = ddp__value_add(g, ddp__child_forward(l, BRANCH, g, x), s, r.act);
    }
    r.saved = s;
    return r.y ? ddp_graph_record(g, &r) : NULL;
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    int self = r->end;
    ddp_value_t *ds, *dx;

    if (!r->residual)
        dy = ddp__act_backward(g, r->act, r->y, dy);
    dx = ddp__backward_range(g, r->split[0], self, dy);
    ds = r->residual ? r->residual->grad : dy;
    if (l->children > SHORTCUT)
        ds = ddp__backward_range(g, r->begin, r->split[0], ds);
    if (!r->x->needs_gradient)
        return NULL;
    return ddp__value_sum(g, dx, ds, dy);
}

static const struct ddp_layer_ops ops = {
    .kind = "skip",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .fuses = DDP_FUSE_ACT(DDP_RELU) | DDP_FUSE_ACT(DDP_RELU6),
};

ddp_layer_t *ddp_skip_new(ddp_layer_t *branch, ddp_layer_t *shortcut)
{
    ddp_layer_t *child[] = {branch, shortcut};

    return ddp__composite_new(sizeof(ddp_layer_t), &ops,
                              shortcut == DDP_END ? 1 : 2, child);
}
