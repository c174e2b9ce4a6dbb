/* fold.c - batch norms of evaluation and sums, within convolutions before them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With running statistics a batch norm is a factor and a summand for each
 * channel, which a convolution can have in its weights: the norm, its residual
 * and its activation then cost no pass over memory.  So does a sum of the
 * result and a residual that stands alone, as in MobileNetV2.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "graph/fold.h"
#include "graph/uses.h"

/* The convolution that computes x for a batch norm and nobody else; -1. */
static int find_conv(const ddp_graph_t *g, const struct ddp__node *norm)
{
    const ddp_value_t *x = norm->buf[DDP__BN_EVAL_X];

    for (int i = 0; i < g->nodes && g->node[i] != norm; i++) {
        const struct ddp__node *n = g->node[i];

        if (n->call.op == DDP__OP_CONV_FWD && n->buf[DDP__CONV_FWD_Y] == x)
            return n->call.conv.act == DDP_IDENTITY &&
                           ddp__graph_uses(g, x) == 2
                       ? i
                       : -1;
    }
    return -1;
}

/* Whether nodes from number i on use the memory of v. */
static bool is_used(const ddp_graph_t *g, int i, const ddp_value_t *v)
{
    for (; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++)
            if (g->node[i]->buf[b] && g->node[i]->buf[b]->base == v->base)
                return true;
    return false;
}

/* Whether y of node i may take the memory of its residual r, if it has one: it
 * is an activation that nobody reads afterwards, nor the convolution itself. */
static bool can_replace(const ddp_graph_t *g, const struct ddp__node *conv,
                        int i, const ddp_value_t *r, const ddp_value_t *y)
{
    return !r || (r->role == DDP__ACTIVATION && y->base == y &&
                  conv->buf[DDP__CONV_FWD_X]->base != r->base &&
                  !is_used(g, i + 1, r));
}

static void replace_value(ddp_graph_t *g, ddp_value_t *r, ddp_value_t *y)
{
    for (int i = 0; i < g->values; i++)
        if (g->value[i]->base == y)
            g->value[i]->base = r->base;
}

/* The node stands where the norm stood, since the residual may be computed
 * after the convolution. */
static void join_nodes(ddp_graph_t *g, const struct ddp__node *conv,
                       struct ddp__node *norm)
{
    struct ddp__node n = {.call = conv->call, .phase = norm->phase};

    n.call.op = DDP__OP_CONV_NORM;
    n.call.conv.act = norm->call.bn.act;
    n.call.conv.eps = norm->call.bn.eps;
    ddp__node_take(&n, DDP__CONV_NORM_X, conv, DDP__CONV_FWD_X);
    ddp__node_take(&n, DDP__CONV_NORM_W, conv, DDP__CONV_FWD_W);
    ddp__node_take(&n, DDP__CONV_NORM_Y, norm, DDP__BN_EVAL_Y);
    ddp__node_take(&n, DDP__CONV_NORM_BN, norm, DDP__BN_EVAL_W);
    if (norm->call.bn.residual) {
        n.call.sum = true;
        n.access[DDP__CONV_NORM_Y] = DDP_UPDATE;
        replace_value(g, norm->buf[DDP__BN_EVAL_R], n.buf[DDP__CONV_NORM_Y]);
    }
    *norm = n;
}

/* The convolution with its norm that computes x, without activation, for sum i
 * and nobody else; -1.  It has no residual: x would be used by that, too. */
static int find_summand(const ddp_graph_t *g, int i, const ddp_value_t *x)
{
    for (int k = 0; k < i; k++) {
        const struct ddp__node *n = g->node[k];

        if (n->call.op == DDP__OP_CONV_NORM && n->buf[DDP__CONV_NORM_Y] == x)
            return n->call.conv.act == DDP_IDENTITY &&
                           ddp__graph_uses(g, x) == 2
                       ? k
                       : -1;
    }
    return -1;
}

/* It stands where the sum stood. */
static void join_sum(ddp_graph_t *g, const struct ddp__node *conv,
                     struct ddp__node *sum, ddp_value_t *residual)
{
    struct ddp__node n = *conv;

    n.phase = sum->phase;
    n.call.conv.act = sum->call.act;
    n.call.sum = true;
    n.buf[DDP__CONV_NORM_Y] = sum->buf[DDP__ADD_Y];
    n.call.buf[DDP__CONV_NORM_Y] = sum->call.buf[DDP__ADD_Y];
    n.access[DDP__CONV_NORM_Y] = DDP_UPDATE;
    replace_value(g, residual, n.buf[DDP__CONV_NORM_Y]);
    *sum = n;
}

/* The convolution that node i, a sum, was joined with; -1: none. */
static int fold_sum(ddp_graph_t *g, int i)
{
    struct ddp__node *sum = g->node[i];

    for (int k = 0; k < 2; k++) {
        ddp_value_t *x = sum->buf[k ? DDP__ADD_B : DDP__ADD_A];
        ddp_value_t *r = sum->buf[k ? DDP__ADD_A : DDP__ADD_B];
        int conv = find_summand(g, i, x);

        if (conv < 0 ||
            !can_replace(g, g->node[conv], i, r, sum->buf[DDP__ADD_Y]))
            continue;
        join_sum(g, g->node[conv], sum, r);
        return conv;
    }
    return -1;
}

/* The convolution that node i, a norm, was joined with; -1: none. */
static int fold_norm(ddp_graph_t *g, int i)
{
    struct ddp__node *norm = g->node[i];
    int conv = find_conv(g, norm);

    if (conv < 0 || !can_replace(g, g->node[conv], i, norm->buf[DDP__BN_EVAL_R],
                                 norm->buf[DDP__BN_EVAL_Y]))
        return -1;
    join_nodes(g, g->node[conv], norm);
    return conv;
}

void ddp__graph_fold(ddp_graph_t *g)
{
    if (!g->spec.folds)
        return;
    for (int i = 0; i < g->nodes; i++) {
        enum ddp__op op = g->node[i]->call.op;
        int conv = op == DDP__OP_BN_EVAL ? fold_norm(g, i)
                   : op == DDP__OP_ADD   ? fold_sum(g, i)
                                         : -1;

        if (conv < 0)
            continue;
        ddp__graph_remove(g, conv);
        i--;
    }
    ddp__graph_note_uses(g);
}
