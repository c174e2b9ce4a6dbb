/* pass.h - forward through layers, backward through what they recorded
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PASS_H
#define DDP_PASS_H

#include "graph/value.h"

/* Forward through a layer that has no parent, or through child i of l. */
ddp_value_t *ddp__layer_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x);
ddp_value_t *ddp__child_forward(ddp_layer_t *l, int i, ddp_graph_t *g,
                                ddp_value_t *x);
/* Backward through the records begin..end-1. */
ddp_value_t *ddp__backward_range(ddp_graph_t *g, int begin, int end,
                                 ddp_value_t *dy);

#endif
