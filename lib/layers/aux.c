/* aux.c - an auxiliary classifier: a branch with a separate loss
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The layer itself is the identity.  In training the branch's output has the
 * run's loss too, times a weight; in evaluation there is no branch.
 */
#include "config.h"

#include <stdio.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/pass.h"

struct aux {
    ddp_layer_t layer;
    float weight;
};

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

/* Branches have large windows: name the classifier that needs larger images. */
static int check_shape(const ddp_layer_t *l, ddp_graph_t *g, struct ddp_shape x)
{
    struct ddp_shape y;
    char why[200];
    int rc;

    if ((rc = ddp__layer_shape(l->child[0], x, &y)) == 0)
        return 0;
    snprintf(why, sizeof(why), "%s", ddp_errmsg());
    return g->rc = ddp__fail(rc,
                             "auxiliary classifier %s: use larger images, or "
                             "no auxiliary classifiers: %s",
                             g->path, why);
}

/* y is a separate value from x, because only y needs a gradient for the
 * branch. */
static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_record r = {.layer = l, .x = x, .begin = g->records};

    if (g->spec.mode != DDP__TRAIN)
        return x;
    if (check_shape(l, g, x->shape) < 0)
        return NULL;
    g->aux++;
    r.saved = ddp__child_forward(l, 0, g, x);
    g->aux--;
    if (!r.saved)
        return NULL;
    r.y = ddp__value_alias(g, x, x->shape);
    return r.y ? ddp_graph_record(g, &r) : NULL;
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    ddp_value_t *dx = ddp__graph_loss(g, r->saved, ((struct aux *)l)->weight);

    dx = ddp__backward_range(g, r->begin, r->end, dx);
    return r->x->needs_gradient ? ddp__value_sum(g, dx, dy, dy) : NULL;
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    o[0] = (struct ddp_option){"weight", ((const struct aux *)l)->weight, NULL};
    return 1;
}

static const struct ddp_layer_ops ops = {
    .kind = "aux",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

ddp_layer_t *ddp_aux_new(ddp_layer_t *branch, float weight)
{
    ddp_layer_t *l;

    if (!(weight > 0 && weight <= 1)) {
        ddp_layer_free(branch);
        ddp__fail(DDP_EINVAL, "aux: weight %g, expected 0 < weight <= 1",
                  (double)weight);
        return NULL;
    }
    if ((l = ddp__composite_new(sizeof(struct aux), &ops, 1, &branch)))
        ((struct aux *)l)->weight = weight;
    return l;
}
