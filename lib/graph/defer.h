/* defer.h - batch norms of training that convolutions compute as they read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEFER_H
#define DDP_DEFER_H

#include "graph/graph.h"

/* Leave each batch norm whose output only one convolution reads, which is no
 * slower if it normalises itself, the statistics alone; does nothing unless the
 * graph is to be changed in this way. */
void ddp__graph_defer(ddp_graph_t *g);

#endif
