/* batch_norm.h - batch normalisation, with what follows it fused
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BATCH_NORM_H
#define DDP_BATCH_NORM_H

#include "graph/graph.h"

/* Whether a record is that of a norm whose backward multiplies by a gate. */
bool ddp__norm_gates(const ddp_graph_t *g, const struct ddp_record *r);

#endif
