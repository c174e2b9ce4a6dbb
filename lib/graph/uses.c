/* uses.c - which nodes use a value, for passes that change a finished graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "graph/uses.h"

int ddp__graph_uses(const ddp_graph_t *g, const ddp_value_t *v)
{
    int n = 0;

    for (int i = 0; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++)
            n += g->node[i]->buf[b] && g->node[i]->buf[b]->base == v->base;
    return n;
}

void ddp__graph_note_uses(ddp_graph_t *g)
{
    for (int i = 0; i < g->values; i++)
        g->value[i]->first_use = g->value[i]->last_use = -1;
    for (int i = 0; i < g->nodes; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            ddp_value_t *v = g->node[i]->buf[b];

            if (v && v->base->first_use < 0)
                v->base->first_use = i;
            if (v)
                v->base->last_use = i;
        }
}

void ddp__graph_remove(ddp_graph_t *g, int i)
{
    free(g->node[i]);
    g->nodes--;
    memmove(g->node + i, g->node + i + 1,
            (size_t)(g->nodes - i) * sizeof(*g->node));
    g->forward_nodes -= i < g->forward_nodes;
}

void ddp__node_take(struct ddp__node *n, int to, const struct ddp__node *other,
                    int from)
{
    n->buf[to] = other->buf[from];
    n->access[to] = other->access[from];
    n->call.buf[to] = other->call.buf[from];
    if (n->call.buffers <= to)
        n->call.buffers = to + 1;
}
