/* inspect.h - what a graph will need
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_INSPECT_H
#define DDP_INSPECT_H

#include "graph/graph.h"

/* Most bytes of activations that one sub-batch has at a time. */
size_t ddp__graph_peak(const ddp_graph_t *g);

#endif
