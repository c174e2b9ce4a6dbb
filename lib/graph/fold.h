/* fold.h - batch norms of evaluation, within the convolutions before them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FOLD_H
#define DDP_FOLD_H

#include "graph/graph.h"

/* Replace each convolution whose output only a batch norm reads, and that
 * batch norm, by one node; does nothing unless the graph is to be folded. */
void ddp__graph_fold(ddp_graph_t *g);

#endif
