/* defer.c - batch norms of training joined with the convolutions behind them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A batch norm reads x twice and writes y once; here it reads x once, for the
 * statistics.  y is in no memory: the convolution and its weight gradient read
 * x, and so does the backward pass for the slope of the activation.
 *
 * The backward pass of a norm reads the gradient of y twice.  Where a depthwise
 * convolution alone makes that, the norm makes it each time instead, and it is
 * in no memory either.
 */
#include "config.h"

#include "graph/defer.h"
#include "graph/uses.h"
#include "runtime/devices.h"

/* ---- forward ------------------------------------------------------------ */

/* The nodes that use the output of a norm; NULL: none does. */
struct users {
    struct ddp__node *conv, *gradient, *backward;
};

/* The node of that operation whose operand is v. */
static struct ddp__node *find_user(const ddp_graph_t *g, enum ddp__op op,
                                   int operand, const ddp_value_t *v)
{
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->call.op == op && g->node[i]->buf[operand] == v)
            return g->node[i];
    return NULL;
}

/* Whether these are all that use y, besides the norm. */
static bool find_users(const ddp_graph_t *g, const ddp_value_t *y,
                       struct users *u)
{
    u->conv = find_user(g, DDP__OP_CONV_FWD, DDP__CONV_FWD_X, y);
    u->gradient = find_user(g, DDP__OP_CONV_BWD_W, DDP__CONV_BWD_W_X, y);
    u->backward = find_user(g, DDP__OP_BN_BWD, DDP__BN_BWD_SLOPE, y);
    return u->conv && ddp__graph_uses(g, y) ==
                          2 + (u->gradient != NULL) + (u->backward != NULL);
}

/* Whether the slope of the activation follows from x, as backward of CPU
 * workers has it. */
static bool tells_slope(const struct ddp__call *norm)
{
    enum ddp_act act = norm->bn.act;

    return !norm->bn.residual &&
           (act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6 ||
            act == DDP_SILU || act == DDP_HARDSWISH);
}

/* A node of a convolution, if it normalises what it reads. */
static struct ddp__node normalising(const struct ddp__node *conv,
                                    enum ddp__op op,
                                    const struct ddp__node *norm)
{
    struct ddp__node n = *conv;

    n.call.op = op;
    n.call.conv.eps = norm->call.bn.eps;
    n.call.conv.norm_act = norm->call.bn.act;
    ddp__node_take(&n, DDP__NORM_CONV_FWD_X, norm, DDP__BN_FWD_X);
    ddp__node_take(&n, DDP__NORM_CONV_FWD_BN, norm, DDP__BN_FWD_W);
    ddp__node_take(&n, DDP__NORM_CONV_FWD_STAT, norm, DDP__BN_FWD_STAT);
    n.access[DDP__NORM_CONV_FWD_STAT] = DDP_READ;
    return n;
}

/* The same in the graph, where it is fast. */
static bool change_convs(ddp_graph_t *g, const struct users *u,
                         const struct ddp__node *norm)
{
    struct ddp__node conv, gradient;

    conv = normalising(u->conv, DDP__OP_NORM_CONV_FWD, norm);
    if (!ddp__devices_normalise(g->spec.ddp, &conv.call))
        return false;
    if (u->gradient) {
        gradient = normalising(u->gradient, DDP__OP_NORM_CONV_BWD_W, norm);
        if (!ddp__devices_normalise(g->spec.ddp, &gradient.call))
            return false;
        *u->gradient = gradient;
    }
    *u->conv = conv;
    return true;
}

/* The norm, if its output need not be written. */
static void defer_norm(ddp_graph_t *g, struct ddp__node *norm)
{
    const ddp_value_t *y = norm->buf[DDP__BN_FWD_Y];
    struct ddp__node stat = *norm;
    struct users u;

    if (!tells_slope(&norm->call) || !find_users(g, y, &u) ||
        !change_convs(g, &u, norm))
        return;
    if (u.backward) {
        ddp__node_take(u.backward, DDP__BN_BWD_SLOPE, norm, DDP__BN_FWD_X);
        u.backward->call.bn.from_x = true;
    }
    stat.call.op = DDP__OP_BN_STAT;
    ddp__node_take(&stat, DDP__BN_STAT_STAT, norm, DDP__BN_FWD_STAT);
    stat.call.buffers = DDP__BN_STAT_BUFFERS;
    for (int i = DDP__BN_STAT_BUFFERS; i < DDP_MAX_BUFFERS; i++) {
        stat.buf[i] = NULL;
        stat.call.buf[i] = (struct ddp__view){0};
    }
    *norm = stat;
}

/* ---- backward ----------------------------------------------------------- */

/* The convolution whose data gradient is dy, if only one node reads that; -1:
 * there is none. */
static int find_gradient(const ddp_graph_t *g, const ddp_value_t *dy)
{
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->call.op == DDP__OP_CONV_BWD_X &&
            g->node[i]->buf[DDP__CONV_BWD_X_DX] == dy)
            return !g->node[i]->call.sum && ddp__graph_uses(g, dy) == 2 ? i
                                                                        : -1;
    return -1;
}

/* A norm's backward pass that makes the gradient which it reads. */
static struct ddp__node joined(const struct ddp__node *conv,
                               const struct ddp__node *norm)
{
    struct ddp__node n = *conv;

    n.phase = norm->phase;
    n.call.op = DDP__OP_NORM_CONV_BWD_X;
    n.call.conv.eps = norm->call.bn.eps;
    n.call.conv.norm_act = norm->call.bn.act;
    ddp__node_take(&n, DDP__NORM_CONV_BWD_X_DX, norm, DDP__BN_BWD_DX);
    ddp__node_take(&n, DDP__NORM_CONV_BWD_X_X, norm, DDP__BN_BWD_X);
    ddp__node_take(&n, DDP__NORM_CONV_BWD_X_BN, norm, DDP__BN_BWD_W);
    ddp__node_take(&n, DDP__NORM_CONV_BWD_X_STAT, norm, DDP__BN_BWD_STAT);
    ddp__node_take(&n, DDP__NORM_CONV_BWD_X_BN_G, norm, DDP__BN_BWD_G);
    return n;
}

/* The convolution that a norm's backward pass was joined with, where that is
 * fast; -1: none. */
static int join_backward(ddp_graph_t *g, struct ddp__node *norm)
{
    int conv = find_gradient(g, norm->buf[DDP__BN_BWD_DY]);
    struct ddp__node n;

    if (conv < 0 || !tells_slope(&norm->call))
        return -1;
    n = joined(g->node[conv], norm);
    if (!ddp__devices_normalise(g->spec.ddp, &n.call))
        return -1;
    *norm = n;
    return conv;
}

void ddp__graph_defer(ddp_graph_t *g)
{
    int conv;

    if (!g->spec.defers || !g->spec.ddp)
        return;
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->call.op == DDP__OP_BN_FWD)
            defer_norm(g, g->node[i]);
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i]->call.op == DDP__OP_BN_BWD &&
            (conv = join_backward(g, g->node[i])) >= 0) {
            ddp__graph_remove(g, conv);
            i--;
        }
    ddp__graph_note_uses(g);
}
