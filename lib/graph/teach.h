/* teach.h - distillation: a chain learns the outputs of another one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TEACH_H
#define DDP_TEACH_H

#include "graph/graph.h"

/* The teacher's forward of x, as evaluation does it, if there is one. */
int ddp__graph_teacher(ddp_graph_t *g, ddp_value_t *x);

/* Its part of the loss of y; dx is added to. */
void ddp__graph_teach(ddp_graph_t *g, ddp_value_t *y, ddp_value_t *dx,
                      ddp_value_t *scale);

#endif
