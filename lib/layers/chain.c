/* chain.c - layers one after another
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/pass.h"
#include "layers/act.h"

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    int rc;

    *y = x;
    for (int i = 0; i < l->children; i++, x = *y)
        if ((rc = ddp__layer_shape(l->child[i], x, y)) < 0)
            return rc;
    return 0;
}

/* Whether a layer may compute the activation that follows it.  Backward of one
 * whose slope does not follow from y has to make its input once more: a batch
 * norm that is trained does so, by our own kernels, where cuDNN has faster
 * ones for the two apart. */
static bool may_fuse(const ddp_graph_t *g, const ddp_layer_t *l,
                     enum ddp_act act)
{
    if (!(ddp__layer_fuses(l) & DDP_FUSE_ACT(act)))
        return false;
    while (l->children)
        l = l->child[l->children - 1];
    return ddp__act_from_y(act) || !ddp_graph_training(g) ||
           (!g->spec.on_gpus && ddp__graph_trains(g, l));
}

/* Let a layer compute the activation that follows it, where it can.  The last
 * layer gets what the chain itself is to fuse. */
static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    enum ddp_act last_act = ddp__take_act(g), act;
    ddp_value_t *last_residual = ddp__take_residual(g);

    for (int i = 0; i < l->children; i++) {
        int next = i + 1;

        act = DDP_IDENTITY;
        if (next < l->children)
            act = ddp__layer_act(l->child[next]);
        if (!may_fuse(g, l->child[i], act))
            act = DDP_IDENTITY;
        g->fuse_act = next == l->children ? last_act : act;
        if (next == l->children)
            g->fuse_residual = last_residual;
        x = ddp__child_forward(l, i, g, x);
        if (act != DDP_IDENTITY)
            i++;
    }
    return x;
}

/* The chain uses the records of its layers and has none of its own. */
static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    (void)g;
    (void)r;
    return dy;
}

static const struct ddp_layer_ops ops = {
    .kind = "chain",
    .shape = shape,
    .forward = forward,
    .backward = backward,
};

/* Add l, or free it where there is no chain for it. */
static void take_layer(ddp_chain_t *c, ddp_layer_t *l)
{
    if (c)
        ddp_chain_add(c, l);
    else
        ddp_layer_free(l);
}

/* The chain, or NULL if a layer could not be added. */
static ddp_chain_t *whole_chain(ddp_chain_t *c)
{
    if (!c || c->rc == 0)
        return c;
    ddp_layer_free(c);
    return NULL;
}

ddp_chain_t *ddp_chain_new(ddp_layer_t *first, ...)
{
    ddp_chain_t *c = ddp__composite_new(sizeof(*c), &ops, 0, NULL);
    va_list ap;

    va_start(ap, first);
    for (ddp_layer_t *l = first; l != DDP_END; l = va_arg(ap, ddp_layer_t *))
        take_layer(c, l);
    va_end(ap);
    return whole_chain(c);
}

ddp_chain_t *ddp_chain_of(int n, ddp_layer_t *const layer[])
{
    ddp_chain_t *c = ddp__composite_new(sizeof(*c), &ops, 0, NULL);

    for (int i = 0; i < n; i++)
        take_layer(c, layer[i]);
    return whole_chain(c);
}

int ddp_chain_add(ddp_chain_t *c, ddp_layer_t *l)
{
    ddp_layer_t **child;
    int rc;

    if (!c || !l)
        ddp__fail_null(!c ? "chain" : "layer");
    if (!c || c->rc < 0 || !l || l->rc < 0)
        goto refuse; /* keep the message of the first failure */
    if (c->ops != &ops || c->params || l->params) {
        ddp__fail(DDP_EINVAL, "a layer can be added only to a chain, and only "
                              "before either of them is used");
        goto refuse;
    }
    if (!(child =
              realloc(c->child, (size_t)(c->children + 1) * sizeof(*child)))) {
        ddp__fail(DDP_ENOMEM, "out of memory for a chain");
        goto refuse;
    }
    c->child = child;
    c->child[c->children++] = l;
    return 0;

refuse:
    rc = ddp_errcode() == DDP_ENOMEM ? DDP_ENOMEM : DDP_EINVAL;
    ddp_layer_free(l);
    if (c)
        c->rc = rc;
    return rc;
}

void ddp_chain_free(ddp_chain_t *c)
{
    ddp_layer_free(c);
}
