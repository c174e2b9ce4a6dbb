/* export.c - a chain as an ONNX model, from the operations of its graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tensors are (N, c, h, w) there, or (N, k) around matrix products: a vector is
 * turned from one into the other where an operation needs it.  What comes out
 * of flattening (h, w, c) is in the order (c, h, w), as in PyTorch, and the
 * columns of the matrix that follows are put in that order.
 *
 * Source   github.com/onnx/onnx, docs/Operators.md, opset 14.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/params_bind.h"
#include "onnx/export.h"
#include "onnx/ops.h"

/* ---- forms of a value --------------------------------------------------- */

static bool same_shape(struct ddp_shape a, struct ddp_shape b)
{
    return a.h == b.h && a.w == b.w && a.c == b.c;
}

/* (N, c, h, w) as (N, c h w). */
static struct ddp__form flattened(struct ddp__export *e, struct ddp__form f,
                                  struct ddp_shape s)
{
    if (f.matrix)
        return f;
    f.name = DDP__ONNX_NODE(e, "Flatten", NULL, f.name);
    f.matrix = true;
    f.from = s;
    return f;
}

/* An alias is the memory of another value with another shape: a vector, because
 * flattening is the only kind. */
struct ddp__form ddp__export_form(struct ddp__export *e, const ddp_value_t *v)
{
    struct ddp__form f = e->form[v->id];

    if (f.name || v->base == v)
        return f;
    f = ddp__export_form(e, v->base);
    return same_shape(v->shape, v->base->shape)
               ? f
               : flattened(e, f, v->base->shape);
}

struct ddp__form ddp__export_matrix(struct ddp__export *e, const ddp_value_t *v)
{
    return flattened(e, ddp__export_form(e, v), v->shape);
}

/* As (N, c, h, w); the channels of a vector are then in our order. */
const char *ddp__export_image(struct ddp__export *e, const ddp_value_t *v)
{
    struct ddp__form f = ddp__export_form(e, v);
    struct ddp_shape s = f.from;

    if (!f.matrix)
        return f.name;
    if (s.h * s.w == 1)
        return DDP__ONNX_NODE(e, "Unsqueeze", NULL, f.name,
                              ddp__onnx_vector(&e->m, 2, (int[]){2, 3}));
    f.name =
        DDP__ONNX_NODE(e, "Reshape", NULL, f.name,
                       ddp__onnx_vector(&e->m, 4, (int[]){0, s.c, s.h, s.w}));
    f.name = DDP__ONNX_NODE(e, "Transpose", NULL, f.name);
    ddp__onnx_ints(&e->m, "perm", 4, (int[]){0, 2, 3, 1});
    return DDP__ONNX_NODE(
        e, "Reshape", NULL, f.name,
        ddp__onnx_vector(&e->m, 4, (int[]){0, s.h * s.w * s.c, 1, 1}));
}

/* ---- the whole ---------------------------------------------------------- */

static void write_input(struct ddp__export *e)
{
    struct ddp_shape s = e->g->x->shape;

    e->form[e->g->x->id] = (struct ddp__form){
        .name = "input", .matrix = s.h * s.w == 1, .from = s};
    ddp__onnx_describe(&e->m, &e->m.input, "input", s.h * s.w == 1 ? 1 : 3,
                       (int[]){s.c, s.h, s.w});
}

/* A vector as (N, k), else an image. */
static void write_output(struct ddp__export *e)
{
    const ddp_value_t *y = e->g->y;
    struct ddp_shape s = y->shape;
    bool vector = s.h * s.w == 1;
    const char *name =
        vector ? ddp__export_matrix(e, y).name : ddp__export_image(e, y);

    if (!name && e->m.rc == 0)
        e->m.rc = ddp__fail(DDP_EINVAL, "ONNX: the chain has no output");
    if (name && !strcmp(name, "input"))
        name = DDP__ONNX_NODE(e, "Identity", NULL, name);
    ddp__onnx_rename(&e->m, name, "output");
    ddp__onnx_describe(&e->m, &e->m.output, "output", vector ? 1 : 3,
                       (int[]){s.c, s.h, s.w});
}

static int export_graph(ddp_graph_t *g, const char *path, ddp_count_f on_count,
                        void *arg)
{
    struct ddp__export e = {
        .g = g, .form = calloc((size_t)g->values + 1, sizeof(*e.form))};
    int rc;

    if (!e.form)
        return ddp__fail(DDP_ENOMEM, "out of memory for an ONNX model");
    ddp__onnx_init(&e.m);
    if ((rc = ddp__params_begin(g->params, false)) == 0) {
        write_input(&e);
        for (int i = 0; i < g->nodes && e.m.rc == 0; i++)
            ddp__export_node(&e, g->node[i]);
        ddp__params_end(g->params);
        write_output(&e);
        rc = e.m.rc < 0 ? e.m.rc : ddp__onnx_save(&e.m, path, on_count, arg);
    }
    ddp__onnx_clear(&e.m);
    free(e.form);
    return rc;
}

int ddp_chain_export_onnx(ddp_chain_t *c, struct ddp_shape in, const char *path,
                          ddp_count_f on_count, void *arg)
{
    struct ddp__graph_spec spec = {.mode = DDP__INFER,
                                   .shape = in,
                                   .type = DDP_F32,
                                   .dtype = DDP_F32,
                                   .cap = 1};
    struct ddp__params *p = ddp__params_of(c);
    ddp_graph_t *g;
    int rc;

    if (!p)
        return ddp_errcode();
    if ((rc = ddp__graph_new(&g, c, p, &spec, false)) < 0)
        return rc;
    rc = export_graph(g, path, on_count, arg);
    ddp__graph_free(g);
    return rc;
}
