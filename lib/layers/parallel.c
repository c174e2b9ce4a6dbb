/* parallel.c - branches on one input, joined by channels or added
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "graph/pass.h"

struct parallel {
    ddp_layer_t layer;
    enum ddp_join join;
};

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    bool concat = ((const struct parallel *)l)->join == DDP_CONCAT;
    struct ddp_shape s;
    int rc;

    for (int i = 0; i < l->children; i++) {
        if ((rc = ddp__layer_shape(l->child[i], x, &s)) < 0)
            return rc;
        if (i == 0) {
            *y = s;
            continue;
        }
        if (s.h != y->h || s.w != y->w || (!concat && s.c != y->c))
            return ddp__fail(DDP_ESHAPE,
                             "parallel: branch %d gives (%d, %d, %d), the "
                             "branches before it (%d, %d, %d)",
                             i, s.h, s.w, s.c, y->h, y->w, y->c);
        if (concat)
            y->c += s.c;
    }
    return 0;
}

static ddp_value_t *concat(ddp_graph_t *g, int n, ddp_value_t *const b[])
{
    struct ddp__call call = {.op = DDP__OP_CONCAT};
    struct ddp_shape s = ddp_value_shape(b[0]);
    ddp_value_t *y;

    for (int i = 1; i < n; i++)
        s.c += ddp_value_shape(b[i]).c;
    y = ddp__value_like(g, s);
    for (int i = 0; i < n; i++) {
        ddp__emit(g, &call,
                  DDP__VALUES([DDP__CONCAT_X] = b[i], [DDP__CONCAT_Y] = y));
        call.at += ddp_value_shape(b[i]).c;
    }
    return y;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_record r = {.layer = l, .x = x, .begin = g->records};
    ddp_value_t *b[DDP_MAX_BRANCHES];

    for (int i = 0; i < l->children; i++) {
        r.split[i] = g->records;
        b[i] = ddp__child_forward(l, i, g, x);
    }
    if (g->rc < 0)
        return NULL;
    if (((struct parallel *)l)->join == DDP_CONCAT) {
        r.y = concat(g, l->children, b);
    } else {
        r.y = b[0];
        for (int i = 1; i < l->children; i++)
            r.y = ddp__value_add(g, r.y, b[i], DDP_IDENTITY);
    }
    return r.y ? ddp_graph_record(g, &r) : NULL;
}

/* The part of dy for branch i, whose output has shape s. */
static ddp_value_t *branch_part(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *dy,
                                struct ddp_shape s, int at)
{
    struct ddp__call call = {.op = DDP__OP_SPLIT, .at = at};
    ddp_value_t *d;

    if (((struct parallel *)l)->join == DDP_ADD)
        return dy;
    d = ddp__value_like(g, s);
    ddp__emit(g, &call, DDP__VALUES([DDP__SPLIT_DY] = dy, [DDP__SPLIT_DX] = d));
    return d;
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    ddp_value_t *dx = NULL, *d;
    struct ddp_shape s;
    int at = dy->shape.c, end = r->end;

    for (int i = l->children - 1; i >= 0; i--) {
        if (ddp__layer_shape(l->child[i], r->x->shape, &s) < 0)
            return NULL;
        at -= s.c;
        d = branch_part(l, g, dy, s, at);
        d = ddp__backward_range(g, r->split[i], end, d);
        dx = r->x->needs_gradient ? ddp__value_sum(g, dx, d, dy) : NULL;
        end = r->split[i];
    }
    return dx;
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    bool add = ((const struct parallel *)l)->join == DDP_ADD;

    o[0] = (struct ddp_option){.name = "join", .text = add ? "add" : "concat"};
    return 1;
}

static const struct ddp_layer_ops ops = {
    .kind = "parallel",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

ddp_layer_t *ddp_parallel_of(enum ddp_join join, int n,
                             ddp_layer_t *const branch[])
{
    ddp_layer_t *l;

    if (n < 1 || n > DDP_MAX_BRANCHES ||
        (join != DDP_CONCAT && join != DDP_ADD)) {
        for (int i = 0; i < n; i++)
            ddp_layer_free(branch[i]);
        ddp__fail(DDP_EINVAL,
                  "parallel: %d branches joined by %d, expected 1 to %d "
                  "branches, and DDP_CONCAT or DDP_ADD",
                  n, (int)join, DDP_MAX_BRANCHES);
        return NULL;
    }
    if ((l = ddp__composite_new(sizeof(struct parallel), &ops, n, branch)))
        ((struct parallel *)l)->join = join;
    return l;
}

ddp_layer_t *ddp_parallel_new(enum ddp_join join, ddp_layer_t *first, ...)
{
    ddp_layer_t *branch[DDP_MAX_BRANCHES + 1]; /* one too many is an error */
    va_list ap;
    int n = 0;

    va_start(ap, first);
    for (ddp_layer_t *l = first; l != DDP_END; l = va_arg(ap, ddp_layer_t *)) {
        if (n <= DDP_MAX_BRANCHES)
            branch[n++] = l;
        else
            ddp_layer_free(l);
    }
    va_end(ap);
    return ddp_parallel_of(join, n, branch);
}
