/* graph_def.h - the graph of a chain as TensorFlow's GraphDef
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GRAPH_DEF_H
#define DDP_GRAPH_DEF_H

#include "base/proto.h"
#include "graph/graph.h"

/* A node for each operation, named as its layer with slashes, "layer1/0/conv1":
 * groups of TensorBoard's page.  g was built with its spans.
 * Errors   DDP_ENOMEM. */
int ddp__graph_def(const ddp_graph_t *g, struct ddp__proto *def);

#endif
