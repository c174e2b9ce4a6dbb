/* ops.c - the ONNX equivalent of each operation of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   github.com/onnx/onnx, docs/Operators.md, opset 14.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/param_values.h"
#include "onnx/export.h"
#include "onnx/ops.h"

#define NODE DDP__ONNX_NODE

static void set_name(struct ddp__export *e, const ddp_value_t *v,
                     const char *name)
{
    e->form[v->id].name = name;
}

static void set_matrix(struct ddp__export *e, const ddp_value_t *v,
                       const char *name, struct ddp_shape from)
{
    e->form[v->id] = (struct ddp__form){name, true, from, 0};
}

/* ---- parameters --------------------------------------------------------- */

/* The block that a value of parameters is; NULL after a failure. */
static const struct ddp__param_block *block_of(struct ddp__export *e,
                                               const ddp_value_t *v)
{
    const struct ddp__params *p = e->g->params;

    for (int k = 0; k < p->blocks; k++)
        if (p->block[k].bucket == v->bucket &&
            p->block[k].offset * sizeof(float) == v->offset)
            return &p->block[k];
    e->m.rc = ddp__fail(DDP_EINVAL, "ONNX: parameters that belong to no layer");
    return NULL;
}

static const float *param_values(const struct ddp__export *e,
                                 const struct ddp__param_block *b, int i)
{
    return e->g->params->bucket[b->bucket].w + b->offset + b->param_offset[i];
}

/* Parameter i of a block under its name in weight files; its values. */
static const char *add_param(struct ddp__export *e,
                             const struct ddp__param_block *b, int i,
                             float **values)
{
    const struct ddp_param *p = &b->param[i];
    const char *name = ddp__onnx_text(&e->m, "%s%s%s", b->prefix,
                                      b->prefix[0] ? "." : "", p->name);

    *values = ddp__onnx_tensor(&e->m, name, p->ndim, p->dim);
    return name;
}

static const char *param(struct ddp__export *e,
                         const struct ddp__param_block *b, int i)
{
    float *v;
    const char *name = add_param(e, b, i, &v);

    if (v)
        ddp__param_export(&b->param[i], param_values(e, b, i), v);
    return name;
}

/* The matrix of a dense layer on what was flattened from s: its columns, which
 * are in the order (h, w, c), in the order (c, h, w). */
static const char *dense_weight(struct ddp__export *e,
                                const struct ddp__param_block *b,
                                struct ddp_shape s)
{
    size_t hw = (size_t)s.h * (size_t)s.w, c = (size_t)s.c;
    const float *w = param_values(e, b, 0);
    float *v;
    const char *name = add_param(e, b, 0, &v);

    for (int o = 0; v && o < b->param[0].dim[0]; o++, w += hw * c)
        for (size_t i = 0; i < c; i++)
            for (size_t k = 0; k < hw; k++)
                *v++ = w[k * c + i];
    return name;
}

/* ---- activations -------------------------------------------------------- */

/* x P(X < x) of the normal distribution. */
static const char *gelu(struct ddp__export *e, const char *x)
{
    const char *y =
        NODE(e, "Mul", NULL, x, ddp__onnx_scalar(&e->m, (float)M_SQRT1_2));

    y = NODE(e, "Erf", NULL, y);
    y = NODE(e, "Add", NULL, y, ddp__onnx_scalar(&e->m, 1));
    y = NODE(e, "Mul", NULL, y, ddp__onnx_scalar(&e->m, 0.5f));
    return NODE(e, "Mul", NULL, x, y);
}

/* A node for each function of enum ddp_act; those that opset 14 lacks are
 * composed of others. */
static const char *activation(struct ddp__export *e, enum ddp_act a,
                              const char *x)
{
    const char *y;

    switch (a) {
    case DDP_IDENTITY:
        return x;
    case DDP_RELU:
        return NODE(e, "Relu", NULL, x);
    case DDP_RELU6:
        return NODE(e, "Clip", NULL, x, ddp__onnx_scalar(&e->m, 0),
                    ddp__onnx_scalar(&e->m, 6));
    case DDP_SILU:
        return NODE(e, "Mul", NULL, x, NODE(e, "Sigmoid", NULL, x));
    case DDP_SIGMOID:
        return NODE(e, "Sigmoid", NULL, x);
    case DDP_TANH:
        return NODE(e, "Tanh", NULL, x);
    case DDP_GELU:
        return gelu(e, x);
    case DDP_HARDSWISH:
        return NODE(e, "HardSwish", NULL, x);
    case DDP_HARDSIGMOID:
        y = NODE(e, "HardSigmoid", NULL, x);
        ddp__onnx_float(&e->m, "alpha", 1.0f / 6);
        return y;
    default:
        e->m.rc = ddp__fail(DDP_EINVAL, "activation %d has no ONNX equivalent",
                            (int)a);
        return NULL;
    }
}

/* ---- operations --------------------------------------------------------- */

static void export_nothing(struct ddp__export *e, const struct ddp__node *n)
{
    (void)e;
    (void)n;
}

static void export_conv(struct ddp__export *e, const struct ddp__node *n)
{
    const struct ddp__conv *c = &n->call.conv;
    const struct ddp__param_block *b = block_of(e, n->buf[DDP__CONV_FWD_W]);
    const char *in[3] = {NULL}, *y;

    if (!b)
        return;
    in[0] = ddp__export_image(e, n->buf[DDP__CONV_FWD_X]);
    in[1] = param(e, b, 0);
    in[2] = c->bias ? param(e, b, 1) : NULL;
    y = ddp__onnx_node(&e->m, "Conv", b->prefix, c->bias ? 3 : 2, in);
    ddp__onnx_ints(&e->m, "kernel_shape", 2, (int[]){c->kh, c->kw});
    ddp__onnx_ints(&e->m, "strides", 2, (int[]){c->sh, c->sw});
    ddp__onnx_ints(&e->m, "dilations", 2, (int[]){c->dh, c->dw});
    ddp__onnx_ints(&e->m, "pads", 4,
                   (int[]){c->top, c->left, c->bottom, c->right});
    ddp__onnx_int(&e->m, "group", c->groups);
    set_name(e, n->buf[DDP__CONV_FWD_Y], activation(e, c->act, y));
}

static void export_dense(struct ddp__export *e, const struct ddp__node *n)
{
    const struct ddp__param_block *b = block_of(e, n->buf[DDP__DENSE_FWD_W]);
    bool bias = n->call.dense.bias;
    const char *in[3] = {NULL}, *y;
    struct ddp__form x;

    if (!b)
        return;
    x = ddp__export_matrix(e, n->buf[DDP__DENSE_FWD_X]);
    in[0] = x.name;
    in[1] = dense_weight(e, b, x.from);
    in[2] = bias ? param(e, b, 1) : NULL;
    y = ddp__onnx_node(&e->m, "Gemm", b->prefix, bias ? 3 : 2, in);
    ddp__onnx_int(&e->m, "transB", 1);
    set_matrix(e, n->buf[DDP__DENSE_FWD_Y], activation(e, n->call.dense.act, y),
               n->buf[DDP__DENSE_FWD_Y]->shape);
}

static void export_norm(struct ddp__export *e, const struct ddp__node *n)
{
    const struct ddp__param_block *b = block_of(e, n->buf[DDP__BN_EVAL_W]);
    const char *y;

    if (!b)
        return;
    y = NODE(e, "BatchNormalization", b->prefix,
             ddp__export_image(e, n->buf[DDP__BN_EVAL_X]), param(e, b, 0),
             param(e, b, 1), param(e, b, 2), param(e, b, 3));
    ddp__onnx_float(&e->m, "epsilon", n->call.bn.eps);
    if (n->call.bn.residual)
        y = NODE(e, "Add", NULL, y,
                 ddp__export_image(e, n->buf[DDP__BN_EVAL_R]));
    set_name(e, n->buf[DDP__BN_EVAL_Y], activation(e, n->call.bn.act, y));
}

static void export_act(struct ddp__export *e, const struct ddp__node *n)
{
    struct ddp__form f = ddp__export_form(e, n->buf[DDP__ACT_FWD_X]);

    f.name = activation(e, n->call.act, f.name);
    e->form[n->buf[DDP__ACT_FWD_Y]->id] = f;
}

static void export_add(struct ddp__export *e, const struct ddp__node *n)
{
    const char *y =
        NODE(e, "Add", NULL, ddp__export_image(e, n->buf[DDP__ADD_A]),
             ddp__export_image(e, n->buf[DDP__ADD_B]));

    set_name(e, n->buf[DDP__ADD_Y], activation(e, n->call.act, y));
}

static void export_scale(struct ddp__export *e, const struct ddp__node *n)
{
    set_name(e, n->buf[DDP__SCALE_FWD_Y],
             NODE(e, "Mul", NULL,
                  ddp__export_image(e, n->buf[DDP__SCALE_FWD_X]),
                  ddp__export_image(e, n->buf[DDP__SCALE_FWD_S])));
}

/* The part of y that starts at a channel, or NULL. */
static const ddp_value_t *find_part(const struct ddp__export *e,
                                    const ddp_value_t *y, int at)
{
    for (int i = 0; i < e->g->nodes; i++) {
        const struct ddp__node *n = e->g->node[i];

        if (n->call.op == DDP__OP_CONCAT && n->buf[DDP__CONCAT_Y] == y &&
            n->call.at == at)
            return n->buf[DDP__CONCAT_X];
    }
    return NULL;
}

/* One call for each part: the last one makes the node. */
static void export_concat(struct ddp__export *e, const struct ddp__node *n)
{
    const ddp_value_t *y = n->buf[DDP__CONCAT_Y], *x;
    struct ddp__form *f = &e->form[y->id];
    const char **in;
    int parts = 0;

    f->channels += n->buf[DDP__CONCAT_X]->shape.c;
    if (f->channels < y->shape.c)
        return;
    if (!(in = calloc((size_t)y->shape.c, sizeof(*in)))) {
        e->m.rc = ddp__fail(DDP_ENOMEM, "out of memory for an ONNX model");
        return;
    }
    for (int at = 0; (x = find_part(e, y, at)); at += x->shape.c)
        in[parts++] = ddp__export_image(e, x);
    f->name = ddp__onnx_node(&e->m, "Concat", NULL, parts, in);
    ddp__onnx_int(&e->m, "axis", 1);
    free(in);
}

/* ---- pooling ------------------------------------------------------------ */

/* How far the last window extends over the end of the image. */
static int overhang(int in, int out, int before, int kernel, int stride)
{
    int end = (out - 1) * stride + kernel - before - in;

    return end > 0 ? end : 0;
}

static const char *window(struct ddp__export *e, const char *kind,
                          const struct ddp__pool *p, const char *x,
                          const int pads[4])
{
    const char *y = NODE(e, kind, NULL, x);

    ddp__onnx_ints(&e->m, "kernel_shape", 2, (int[]){p->kh, p->kw});
    ddp__onnx_ints(&e->m, "strides", 2, (int[]){p->sh, p->sw});
    ddp__onnx_ints(&e->m, "pads", 4, pads);
    return y;
}

/* Padding that gives as many windows as y has, so that other programs need not
 * round like PyTorch with ceil_mode. */
static void pads_of(const struct ddp__node *n, int pads[4])
{
    const struct ddp__pool *p = &n->call.pool;
    struct ddp_shape x = n->buf[DDP__MAX_POOL_FWD_X]->shape,
                     y = n->buf[DDP__MAX_POOL_FWD_Y]->shape;

    pads[0] = p->top;
    pads[1] = p->left;
    pads[2] = overhang(x.h, y.h, p->top, p->kh, p->sh);
    pads[3] = overhang(x.w, y.w, p->left, p->kw, p->sw);
}

static void export_max_pool(struct ddp__export *e, const struct ddp__node *n)
{
    int pads[4];

    pads_of(n, pads);
    set_name(e, n->buf[DDP__MAX_POOL_FWD_Y],
             window(e, "MaxPool", &n->call.pool,
                    ddp__export_image(e, n->buf[DDP__MAX_POOL_FWD_X]), pads));
}

/* The part of window j of out that each of in pixels is: (in, out), or (out,
 * in) when turned. */
static const char *window_shares(struct ddp__export *e, int in, int out,
                                 bool turned)
{
    const char *name =
        ddp__onnx_text(&e->m, "shares:%zu", e->m.graph.n_initializer);
    int dim[] = {turned ? out : in, turned ? in : out};
    float *v = ddp__onnx_tensor(&e->m, name, 2, dim);

    for (int64_t j = 0; v && j < out; j++) {
        int64_t begin = j * in / out, end = ((j + 1) * in + out - 1) / out;

        for (int64_t i = begin; i < end; i++)
            v[turned ? j * in + i : i * out + j] = 1 / (float)(end - begin);
    }
    return name;
}

/* ONNX has only the global mean: use windows if they have one size, else a
 * product with a matrix for each direction. */
static const char *adaptive(struct ddp__export *e, const char *v,
                            struct ddp_shape x, struct ddp_shape y)
{
    struct ddp__pool p = {
        .kh = x.h / y.h, .kw = x.w / y.w, .sh = x.h / y.h, .sw = x.w / y.w};

    if (y.h == 1 && y.w == 1)
        return NODE(e, "GlobalAveragePool", NULL, v);
    if (x.h % y.h == 0 && x.w % y.w == 0)
        return window(e, "AveragePool", &p, v, (int[4]){0});
    v = NODE(e, "MatMul", NULL, v, window_shares(e, x.w, y.w, false));
    return NODE(e, "MatMul", NULL, window_shares(e, x.h, y.h, true), v);
}

/* Windows that extend over the padding divide by the number of pixels inside
 * it, so padding that counts becomes pixels. */
static const char *mean(struct ddp__export *e, const struct ddp__node *n,
                        const char *x)
{
    const struct ddp__pool *p = &n->call.pool;
    bool count = p->count_pad;
    int pads[4];

    pads_of(n, pads);
    if (count && (pads[2] > p->bottom || pads[3] > p->right)) {
        x = NODE(e, "Pad", NULL, x,
                 ddp__onnx_vector(&e->m, 8,
                                  (int[]){0, 0, p->top, p->left, 0, 0,
                                          p->bottom, p->right}));
        pads[0] = pads[1] = 0;
        pads[2] = pads[2] > p->bottom ? pads[2] - p->bottom : 0;
        pads[3] = pads[3] > p->right ? pads[3] - p->right : 0;
        count = false;
    }
    x = window(e, "AveragePool", p, x, pads);
    ddp__onnx_int(&e->m, "count_include_pad", count);
    return x;
}

static void export_mean_pool(struct ddp__export *e, const struct ddp__node *n)
{
    const char *x = ddp__export_image(e, n->buf[DDP__MEAN_POOL_FWD_X]);

    set_name(e, n->buf[DDP__MEAN_POOL_FWD_Y],
             n->call.pool.adaptive
                 ? adaptive(e, x, n->buf[DDP__MEAN_POOL_FWD_X]->shape,
                            n->buf[DDP__MEAN_POOL_FWD_Y]->shape)
                 : mean(e, n, x));
}

/* ---- all of them -------------------------------------------------------- */

/* Empty cells: operations that inference does not use, or that ONNX cannot
 * express. */
static void (*const op[DDP__OP_COUNT])(struct ddp__export *e,
                                       const struct ddp__node *n) = {
    [DDP__OP_HOST] = export_nothing, /* input and output */
    [DDP__OP_CONV_FWD] = export_conv,
    [DDP__OP_DENSE_FWD] = export_dense,
    [DDP__OP_BN_EVAL] = export_norm,
    [DDP__OP_ACT_FWD] = export_act,
    [DDP__OP_ADD] = export_add,
    [DDP__OP_MAX_POOL_FWD] = export_max_pool,
    [DDP__OP_MEAN_POOL_FWD] = export_mean_pool,
    [DDP__OP_CONCAT] = export_concat,
    [DDP__OP_SCALE_FWD] = export_scale,
};

void ddp__export_node(struct ddp__export *e, const struct ddp__node *n)
{
    const struct ddp__call *c = &n->call;

    if (op[c->op])
        op[c->op](e, n);
    else
        e->m.rc = ddp__fail(DDP_EINVAL, "%s has no ONNX equivalent",
                            ddp__op_is(c->op, DDP__IS_USER)
                                ? c->user.kernel->name
                                : ddp__signature[c->op].name);
}
