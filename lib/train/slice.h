/* slice.h - how many samples of inference go through a chain at a time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SLICE_H
#define DDP_SLICE_H

#include "graph/graph.h"

/* At most `batch`; spec: shape and types.  < 0: an error. */
int ddp__slice_of(const ddp_t *ddp, ddp_chain_t *chain,
                  const struct ddp__graph_spec *spec, int batch);

#endif
