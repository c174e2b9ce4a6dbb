/* dnn_graph.h - cuDNN's graph API: tensors, operations on them, and plans
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     enum { X = 1, W, Y, TENSORS };
 *     struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();
 *     const void *p[TENSORS] = {[X] = x, [W] = w, [Y] = y};
 *
 *     ddp__cudnn_tensor(g, X, &shape_of_x);
 *     ddp__cudnn_tensor(g, W, &shape_of_w);
 *     ddp__cudnn_tensor(g, Y, &shape_of_y);
 *     ddp__cudnn_conv(g, DDP__CUDNN_FORWARD, false, &conv, X, W, Y);
 *     rc = ddp__cudnn_plan_get(t, g, limit, tune, &plan);
 *     ...
 *     ddp__cudnn_run(plan, worker, p, workspace);
 *
 * Who builds a graph numbers its tensors from 1 by an enum, and places their
 * pointers by the same names when it runs.  The first failure sticks: later
 * calls do nothing and ddp__cudnn_plan_get() returns it.  A graph records its
 * tensors and operations as text, which is the key of its plan.
 */
#ifndef DDP_DNN_GRAPH_H
#define DDP_DNN_GRAPH_H

#include <cudnn.h>

#include "ops.h"

typedef cudnnBackendDescriptor_t ddp__cudnn_desc;

enum ddp__cudnn_kind {
    DDP__CUDNN_REAL,    /* in memory: a pointer at run time */
    DDP__CUDNN_VIRTUAL, /* between two operations, never in memory */
    DDP__CUDNN_SCALAR,  /* a number of the host: a pointer to it at run time */
};

/* Channels last; a filter is (o, kh, kw, c / groups). */
struct ddp__cudnn_shape {
    cudnnDataType_t type;
    int n, h, w, c;
    enum ddp__cudnn_kind kind;
};

enum {
    DDP__CUDNN_MAX_TENSORS = 24, /* the first is no tensor */
    DDP__CUDNN_MAX_OPS = 8,
    DDP__CUDNN_MAX_DESCS = 64
};

struct ddp__cudnn_graph {
    int rc;
    char key[1500];
    size_t key_len;
    struct {
        ddp__cudnn_desc desc; /* not owned; NULL: the graph has no such one */
        enum ddp__cudnn_kind kind;
        size_t size; /* in bytes, of a real one */
    } tensor[DDP__CUDNN_MAX_TENSORS];
    ddp__cudnn_desc op[DDP__CUDNN_MAX_OPS];
    int ops;
    ddp__cudnn_desc desc[DDP__CUDNN_MAX_DESCS]; /* owned: all of them */
    int descs;
};

struct ddp__cudnn_graph *ddp__cudnn_graph_new(void);
void ddp__cudnn_graph_free(struct ddp__cudnn_graph *g);

/* Wrong status: ddp__fail() with what was being done.  DDP_ENODEV: cuDNN has
 * nothing for that; it may have for something else. */
int ddp__cudnn_status(cudnnStatus_t e, const char *what);

/* The type of an activation. */
cudnnDataType_t ddp__cudnn_type(enum ddp_dtype type);

/* The views of a call's buffer for n samples. */
struct ddp__cudnn_shape ddp__cudnn_view(const struct ddp__call *c, int buf,
                                        int n);

void ddp__cudnn_tensor(struct ddp__cudnn_graph *g, int tensor,
                       const struct ddp__cudnn_shape *s);

enum ddp__cudnn_pass { DDP__CUDNN_FORWARD, DDP__CUDNN_DATA, DDP__CUDNN_FILTER };

/* Forward writes y, data x, filter w; each out of the two others.  add: it is
 * added to what is there. */
void ddp__cudnn_conv(struct ddp__cudnn_graph *g, enum ddp__cudnn_pass pass,
                     bool add, const struct ddp__conv *k, int x, int w, int y);

/* y = x + b, b one per channel. */
void ddp__cudnn_add(struct ddp__cudnn_graph *g, int x, int b, int y);

void ddp__cudnn_relu(struct ddp__cudnn_graph *g, int x, int y);

/* y = x > zero, a number; y is of CUDNN_DATA_BOOLEAN, eight to a byte. */
void ddp__cudnn_greater(struct ddp__cudnn_graph *g, int x, int zero, int y);

/* y = x m, m boolean */
void ddp__cudnn_choose(struct ddp__cudnn_graph *g, int x, int m, int y);

/* dx = dy where x > 0, else 0 */
void ddp__cudnn_relu_bwd(struct ddp__cudnn_graph *g, int x, int dy, int dx);

/* y = (x - mean) inv scale + shift.  With eps, mean and inv = 1 / sqrt(var +
 * eps) are computed from x and written; without (0), they are read. */
struct ddp__cudnn_norm {
    int x, scale, shift, eps, mean, inv, y;
};
void ddp__cudnn_norm(struct ddp__cudnn_graph *g,
                     const struct ddp__cudnn_norm *t);

struct ddp__cudnn_norm_bwd {
    int x, dy, scale, mean, inv, dscale, dshift, dx;
};
void ddp__cudnn_norm_bwd(struct ddp__cudnn_graph *g,
                         const struct ddp__cudnn_norm_bwd *t);

/* For the above. */
ddp__cudnn_desc ddp__cudnn_new(struct ddp__cudnn_graph *g,
                               cudnnBackendDescriptorType_t type);
void ddp__cudnn_set(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                    cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *value);
void ddp__cudnn_finish(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                       const char *what);

#endif
