/* export.h - a graph on its way to an ONNX model
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ONNX_EXPORT_H
#define DDP_ONNX_EXPORT_H

#include "graph/graph.h"
#include "onnx/model.h"

/* The ONNX tensors of a value. */
struct ddp__form {
    const char *name;      /* NULL: nothing yet */
    bool matrix;           /* (N, k) instead of (N, c, h, w) */
    struct ddp_shape from; /* matrix: what was flattened to it */
    int channels;          /* of a value that is concatenated: so far */
};

struct ddp__export {
    struct ddp__onnx m;
    const struct ddp_graph *g;
    struct ddp__form *form; /* of each value; owned */
};

/* Add a node; returns the name of its output. */
#define DDP__ONNX_NODE(e, kind, label, ...)                                    \
    ddp__onnx_node(                                                            \
        &(e)->m, kind, label,                                                  \
        (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),   \
        (const char *const[]){__VA_ARGS__})

/* A value as it is, as (N, k), and as (N, c, h, w); the channels of a vector
 * are in our order there. */
struct ddp__form ddp__export_form(struct ddp__export *e, const ddp_value_t *v);
struct ddp__form ddp__export_matrix(struct ddp__export *e,
                                    const ddp_value_t *v);
const char *ddp__export_image(struct ddp__export *e, const ddp_value_t *v);

#endif
