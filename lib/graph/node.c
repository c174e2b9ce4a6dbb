/* node.c - calls of operations, as nodes of a graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/node.h"

/* A node without buffers, or NULL, also after an earlier failure. */
static struct ddp__node *node_new(ddp_graph_t *g, const struct ddp__call *c)
{
    struct ddp__node *n;

    if (g->rc < 0 || (g->rc = ddp__array_grow((void **)&g->node, g->nodes,
                                              sizeof(*g->node))) < 0)
        return NULL;
    if (!(n = calloc(1, sizeof(*n)))) {
        g->rc = ddp__fail(DDP_ENOMEM, "out of memory for a graph");
        return NULL;
    }
    n->call = *c;
    n->call.cap = g->spec.cap;
    memcpy(n->call.fewer, g->spec.fewer, sizeof(n->call.fewer));
    n->call.buffers = 0;
    n->phase = g->phase;
    g->node[g->nodes++] = n;
    return n;
}

/* Buffer i of the last node. */
static void set_buffer(ddp_graph_t *g, struct ddp__node *n, int i,
                       ddp_value_t *v, enum ddp_access access)
{
    n->buf[i] = v;
    n->access[i] = access;
    n->call.buf[i] =
        (struct ddp__view){v->type, v->per_sample, v->shape, v->offset};
    n->call.buffers = i + 1;
    if (v->base->first_use < 0)
        v->base->first_use = g->nodes - 1;
    v->base->last_use = g->nodes - 1;
}

static bool has_all_operands(ddp_graph_t *g, const struct ddp__signature *s,
                             ddp_value_t *const value[])
{
    for (int i = 0; g->rc == 0 && i < s->operands; i++)
        if (!value[i] && !(s->operand[i].use & DDP__OPTIONAL))
            g->rc = ddp__fail(DDP_EINVAL, "%s: operand %s of %s is missing",
                              g->path, s->operand[i].name, s->name);
    return g->rc == 0;
}

void ddp__emit(ddp_graph_t *g, const struct ddp__call *c,
               ddp_value_t *const value[DDP_MAX_BUFFERS])
{
    const struct ddp__signature *s = ddp__call_signature(c);
    struct ddp__node *n;

    if (!has_all_operands(g, s, value) || !(n = node_new(g, c)))
        return;
    for (int i = 0; i < s->operands; i++)
        if (value[i])
            set_buffer(g, n, i, value[i],
                       ddp__call_access(c, i, value[i]->base->first_use < 0));
}

static void emit_custom(ddp_graph_t *g, const struct ddp__call *c, int buffers,
                        ddp_value_t *const buf[],
                        const enum ddp_access access[])
{
    struct ddp__node *n;

    for (int i = 0; g->rc == 0 && i < buffers; i++)
        if (!buf[i])
            g->rc = ddp__fail(DDP_EINVAL, "%s: a value of a call is missing",
                              g->path);
    if (!(n = node_new(g, c)))
        return;
    for (int i = 0; i < buffers; i++)
        set_buffer(g, n, i, buf[i], access[i]);
}

int ddp_graph_call(ddp_graph_t *g, const struct ddp_kernel *k, const void *arg,
                   int buffers, ddp_value_t *const buf[],
                   const enum ddp_access access[])
{
    struct ddp__call c = {.op = DDP__OP_USER, .user = {k, arg}};

    if (g->rc == 0 && (!k || !k->on[DDP_CPU]))
        g->rc = ddp__fail(DDP_EINVAL, "%s: a kernel needs a function for CPUs",
                          g->path);
    if (g->rc == 0 && (buffers < 1 || buffers > DDP_MAX_BUFFERS))
        g->rc = ddp__fail(DDP_EINVAL,
                          "%s: a kernel has %d buffers, expected 1 to %d",
                          g->path, buffers, DDP_MAX_BUFFERS);
    if (g->rc == 0)
        emit_custom(g, &c, buffers, buf, access);
    return g->rc;
}

ddp_value_t *ddp__value_add(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            enum ddp_act act)
{
    ddp_value_t *y;

    if (!a || !b)
        return NULL;
    y = ddp__value_like(g, a->shape);
    ddp__emit(
        g, &(struct ddp__call){.op = DDP__OP_ADD, .act = act},
        DDP__VALUES([DDP__ADD_A] = a, [DDP__ADD_B] = b, [DDP__ADD_Y] = y));
    return y;
}

static bool same_shape(struct ddp_shape a, struct ddp_shape b)
{
    return a.h == b.h && a.w == b.w && a.c == b.c;
}

/* Whether the data gradient of a convolution is added as fast as it is stored:
 * on CPUs sums of pixels in f32 are. */
static bool adds_gradient(const ddp_graph_t *g, const struct ddp__conv *k)
{
    bool padded = k->top || k->bottom || k->left || k->right;

    return g->spec.on_gpus ||
           (g->spec.dtype == DDP_F32 && k->groups == 1 && k->kh == 1 &&
            k->kw == 1 && k->sh == 1 && k->sw == 1 && !padded);
}

/* Which operand of a node is a gradient that it could add to another; -1. */
static int find_summand(const ddp_graph_t *g, const struct ddp__node *n)
{
    if (n->call.op == DDP__OP_SPLIT)
        return DDP__SPLIT_DX;
    return n->call.op == DDP__OP_CONV_BWD_X && adds_gradient(g, &n->call.conv)
               ? DDP__CONV_BWD_X_DX
               : -1;
}

/* Where the last node computes `from` and nothing else has used that: have it
 * add to `into` instead.  This saves reading both once more. */
static bool add_where_computed(ddp_graph_t *g, ddp_value_t *into,
                               ddp_value_t *from)
{
    struct ddp__node *n = g->nodes ? g->node[g->nodes - 1] : NULL;
    int dx = n ? find_summand(g, n) : -1;

    if (g->rc < 0 || dx < 0 || n->call.sum || n->buf[dx] != from ||
        into->base->first_use < 0 || n->buf[0]->base == into->base ||
        !same_shape(into->shape, from->shape))
        return false;
    n->call.sum = true;
    from->first_use = from->last_use = -1;
    set_buffer(g, n, dx, into, DDP_UPDATE);
    return true;
}

ddp_value_t *ddp__value_sum(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            const ddp_value_t *keep)
{
    if (!a || !b)
        return a ? a : b;
    if (a->base == keep->base) {
        ddp_value_t *swap = a;

        a = b;
        b = swap;
    }
    if (a->base == keep->base || a->base == b->base)
        return ddp__value_add(g, a, b, DDP_IDENTITY);
    if (add_where_computed(g, a, b))
        return a;
    if (b->base != keep->base && add_where_computed(g, b, a))
        return b;
    ddp__emit(g, &(struct ddp__call){.op = DDP__OP_ACC},
              DDP__VALUES([DDP__ACC_DST] = a, [DDP__ACC_SRC] = b));
    return a;
}

ddp_value_t *ddp__act_backward(ddp_graph_t *g, enum ddp_act act, ddp_value_t *s,
                               ddp_value_t *dy)
{
    ddp_value_t *dx;

    if (act == DDP_IDENTITY || g->rc < 0)
        return dy;
    dx = ddp__value_like(g, dy->shape);
    ddp__emit(g, &(struct ddp__call){.op = DDP__OP_ACT_BWD, .act = act},
              DDP__VALUES([DDP__ACT_BWD_SLOPE] = s, [DDP__ACT_BWD_DY] = dy,
                          [DDP__ACT_BWD_DX] = dx));
    return dx;
}

ddp_value_t *ddp__weighted_backward(ddp_graph_t *g, const struct ddp_record *r,
                                    ddp_value_t *dy, struct ddp__call call,
                                    enum ddp__op bwd_w, enum ddp__op bwd_x)
{
    ddp_value_t *w, *dx;

    dy = ddp__act_backward(g, r->act, r->y, dy);
    if (ddp__graph_trains(g, r->layer)) {
        call.op = bwd_w;
        g->phase = DDP__BACKWARD_W;
        ddp__emit(
            g, &call,
            DDP__VALUES([DDP__CONV_BWD_W_X] = r->x, [DDP__CONV_BWD_W_DY] = dy,
                        [DDP__CONV_BWD_W_G] =
                            ddp_graph_param_gradient(g, r->layer)));
        g->phase = DDP__BACKWARD_X;
    }
    if (!r->x->needs_gradient)
        return NULL;
    w = ddp_graph_param(g, r->layer);
    dx = ddp__value_like(g, r->x->shape);
    call.op = bwd_x;
    ddp__emit(g, &call,
              DDP__VALUES([DDP__CONV_BWD_X_DY] = dy, [DDP__CONV_BWD_X_W] = w,
                          [DDP__CONV_BWD_X_DX] = dx));
    return dx;
}

enum ddp_act ddp__take_act(ddp_graph_t *g)
{
    enum ddp_act a = g->fuse_act;

    g->fuse_act = DDP_IDENTITY;
    return a;
}

ddp_value_t *ddp__take_residual(ddp_graph_t *g)
{
    ddp_value_t *r = g->fuse_residual;

    g->fuse_residual = NULL;
    return r;
}
