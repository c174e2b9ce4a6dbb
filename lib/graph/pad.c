/* pad.c - images of three channels, made wider for GPUs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tensor cores take channels eight at a time.  cuDNN would copy such images to
 * its workspace, in forward and again for the gradient of the weights.  So the
 * input operation pads them with zeros, if only convolutions read its output;
 * nothing else changes for these.
 */
#include "config.h"

#include "graph/graph.h"
#include "graph/pad.h"

static bool is_input(const struct ddp__node *n)
{
    return ddp__op_is(n->call.op, DDP__IS_INPUT);
}

/* Whether buffer b is the x of a convolution without groups. */
static bool is_image(const struct ddp__node *n, int b)
{
    return ddp__op_is(n->call.op, DDP__IS_CONV) &&
           !ddp__op_is(n->call.op, DDP__IS_BWD_X) &&
           b == ddp__op_xwy(n->call.op).x && n->call.conv.groups == 1;
}

static bool can_pad(const ddp_graph_t *g, const ddp_value_t *v)
{
    bool used = false;

    if (v->shape.c % g->spec.channels == 0)
        return false;
    for (int i = 0; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            const ddp_value_t *w = g->node[i]->buf[b];

            if (!w || w->base != v ||
                (is_input(g->node[i]) && b == DDP__INPUT_U8_Y))
                continue;
            if (w != v || !is_image(g->node[i], b))
                return false;
            used = true;
        }
    return used;
}

static void pad_value(ddp_graph_t *g, ddp_value_t *v)
{
    int c = v->shape.c, k = g->spec.channels;

    v->shape.c = (c + k - 1) / k * k;
    for (int i = 0; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            if (g->node[i]->buf[b] != v)
                continue;
            g->node[i]->call.buf[b].shape.c = v->shape.c;
            if (is_image(g->node[i], b))
                g->node[i]->call.conv.in = c;
        }
}

void ddp__graph_pad(ddp_graph_t *g)
{
    if (g->spec.channels < 2 || ddp__dtype_size(g->spec.dtype) != 2)
        return;
    for (int i = 0; i < g->nodes; i++)
        if (is_input(g->node[i]) &&
            can_pad(g, g->node[i]->buf[DDP__INPUT_U8_Y]))
            pad_value(g, g->node[i]->buf[DDP__INPUT_U8_Y]);
}
