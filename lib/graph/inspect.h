/* inspect.h - the memory that a graph needs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_INSPECT_H
#define DDP_INSPECT_H

#include "graph/graph.h"

/* Peak size of one sub-batch's activations in bytes. */
size_t ddp__graph_peak(const ddp_graph_t *g);

#endif
