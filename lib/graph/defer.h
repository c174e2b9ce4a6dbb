/* defer.h - batch norms of training joined with the convolutions behind them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEFER_H
#define DDP_DEFER_H

#include "graph/graph.h"

/* Where only one convolution reads the output of a batch norm, and is about as
 * fast if it normalises itself, have the norm compute its statistics alone; and
 * have its backward pass make the gradient that it reads, where that is faster.
 * Does nothing unless the graph is to be changed in this way. */
void ddp__graph_defer(ddp_graph_t *g);

#endif
