/* uses.h - which nodes use a value, for passes that change a finished graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_USES_H
#define DDP_USES_H

#include "graph/graph.h"

/* How many operands of all nodes share memory with v. */
int ddp__graph_uses(const ddp_graph_t *g, const ddp_value_t *v);

/* Which nodes use values first and last, after nodes have changed. */
void ddp__graph_note_uses(ddp_graph_t *g);

void ddp__graph_remove(ddp_graph_t *g, int node);

/* Operand `to` of a node: operand `from` of another one. */
void ddp__node_take(struct ddp__node *n, int to, const struct ddp__node *other,
                    int from);

#endif
