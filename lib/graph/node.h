/* node.h - calls of operations, as nodes of a graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NODE_H
#define DDP_NODE_H

#include "graph/value.h"

enum ddp__phase { DDP__FORWARD, DDP__BACKWARD_X, DDP__BACKWARD_W };

struct ddp__node {
    struct ddp__call call;
    ddp_value_t *buf[DDP_MAX_BUFFERS]; /* NULL: absent */
    enum ddp_access access[DDP_MAX_BUFFERS];
    enum ddp__phase phase;
};

/* Add a call; c->op and its union are set, views are filled in here.  Values
 * are given by operand: DDP__VALUES([DDP__ACT_FWD_X] = x, ...); an optional one
 * may be left out. */
void ddp__emit(ddp_graph_t *g, const struct ddp__call *c,
               ddp_value_t *const value[DDP_MAX_BUFFERS]);
#define DDP__VALUES(...) ((ddp_value_t *const[DDP_MAX_BUFFERS]){__VA_ARGS__})

/* dz = dy act'(.), where s is what ddp__act_from_y() selects; dy if act is
 * identity. */
ddp_value_t *ddp__act_backward(ddp_graph_t *g, enum ddp_act act, ddp_value_t *s,
                               ddp_value_t *dy);
/* Backward of y = act(f(x, w)): the operations bwd_w and, if x needs a
 * gradient, bwd_x on the call's other fields; returns dx. */
ddp_value_t *ddp__weighted_backward(ddp_graph_t *g, const struct ddp_record *r,
                                    ddp_value_t *dy, struct ddp__call call,
                                    enum ddp__op bwd_w, enum ddp__op bwd_x);
/* What the caller is to fuse; clears it. */
enum ddp_act ddp__take_act(ddp_graph_t *g);
ddp_value_t *ddp__take_residual(ddp_graph_t *g);
/* a + b, in place if that does not change keep; either may be NULL. */
ddp_value_t *ddp__value_sum(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            const ddp_value_t *keep);
/* y = act(a + b) as a new value. */
ddp_value_t *ddp__value_add(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            enum ddp_act act);

#endif
