/* conv.c - convolutions by cuDNN
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Weights go in as activations' type, sums are f32.  A gradient of weights
 * comes out in activations' type, as cuDNN's fast engines have it, and is
 * added to g in f32.  Where x has more channels than the weights, these are
 * made wider with zeros, and their gradient loses what belongs to those.  A
 * gradient of x is added to another one where cuDNN has an engine for that.
 */
#include "config.h"

#include "backend.h"
#include "base/error.h"
#include "conv.h"
#include "rows.h"
#include "tasks.h"
#include "variant.h"
#include "weights.h"

/* The tensors of its graphs. */
enum {
    CONV_X = 1,
    CONV_W,
    CONV_BIAS,
    CONV_SUM,    /* fused: between convolution and bias */
    CONV_BIASED, /* fused, with relu: between bias and relu */
    CONV_Y,
    CONV_TENSORS
};
_Static_assert((int)CONV_TENSORS <= (int)DDP__CUDNN_MAX_TENSORS,
               "a graph has room for the tensors of a convolution");

/* Of activations. */
static enum ddp_dtype type_of(const struct ddp__call *c)
{
    return c->buf[ddp__op_xwy(c->op).x].type;
}

/* ---- graphs ------------------------------------------------------------- */

/* y = x w, where a graph with an epilogue has a virtual tensor instead of y;
 * fused: that, or a sum. */
static void add_conv(struct ddp__cudnn_graph *g, enum ddp__cudnn_pass pass,
                     const struct ddp__call *c, int n, bool fused)
{
    bool epilogue = fused && !c->sum;
    int out = epilogue ? CONV_SUM : CONV_Y;
    struct ddp__cudnn_shape x = ddp__cudnn_view(c, ddp__op_xwy(c->op).x, n);
    struct ddp__cudnn_shape y = ddp__cudnn_view(c, ddp__op_xwy(c->op).y, n);
    struct ddp__cudnn_shape w = {.type = x.type,
                                 .n = y.c,
                                 .h = c->conv.kh,
                                 .w = c->conv.kw,
                                 .c = x.c / c->conv.groups};

    if (epilogue) {
        y.kind = DDP__CUDNN_VIRTUAL;
        y.type = CUDNN_DATA_FLOAT;
    }
    ddp__cudnn_tensor(g, CONV_X, &x);
    ddp__cudnn_tensor(g, CONV_W, &w);
    ddp__cudnn_tensor(g, out, &y);
    ddp__cudnn_conv(g, pass, fused && c->sum, &c->conv, CONV_X, CONV_W, out);
}

/* Bias, and relu, into y. */
static void add_epilogue(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                         int n)
{
    struct ddp__cudnn_shape y = ddp__cudnn_view(c, ddp__op_xwy(c->op).y, n),
                            between = y;
    struct ddp__cudnn_shape bias = {
        .type = y.type, .n = 1, .h = 1, .w = 1, .c = y.c};

    between.type = CUDNN_DATA_FLOAT;
    between.kind = DDP__CUDNN_VIRTUAL;
    ddp__cudnn_tensor(g, CONV_BIAS, &bias);
    ddp__cudnn_tensor(g, CONV_Y, &y);
    if (c->conv.act == DDP_RELU) {
        ddp__cudnn_tensor(g, CONV_BIASED, &between);
        ddp__cudnn_add(g, CONV_SUM, CONV_BIAS, CONV_BIASED);
        ddp__cudnn_relu(g, CONV_BIASED, CONV_Y);
    } else {
        ddp__cudnn_add(g, CONV_SUM, CONV_BIAS, CONV_Y);
    }
}

static int build_conv_plan(const struct ddp__call *c, struct ddp__cuda_plan *p,
                           struct ddp__cuda_variant *v, bool fused)
{
    static const enum ddp__cudnn_pass pass[] = {
        [DDP__OP_CONV_FWD] = DDP__CUDNN_FORWARD,
        [DDP__OP_CONV_BWD_X] = DDP__CUDNN_DATA,
        [DDP__OP_CONV_BWD_W] = DDP__CUDNN_FILTER};
    struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();

    if (!g)
        return DDP_ENOMEM;
    add_conv(g, pass[c->op], c, v->n, fused);
    if (fused && !c->sum)
        add_epilogue(g, c, v->n);
    v->fused = fused;
    return ddp__cudnn_plan_get(v->target, g, p->limit, v->n == c->cap, &v->dnn);
}

/* Whether cuDNN has fast engines with the call's epilogue: with a bias of the
 * activations' type, not with relu alone. */
static bool can_fuse(const struct ddp__call *c)
{
    return c->op == DDP__OP_CONV_FWD && c->conv.bias &&
           (c->conv.act == DDP_RELU || c->conv.act == DDP_IDENTITY);
}

/* The epilogue, or the sum, in the plan if possible. */
static int make_conv_plan(const struct ddp__call *c, struct ddp__cuda_plan *p,
                          struct ddp__cuda_variant *v)
{
    int rc = DDP_ENODEV;

    if (can_fuse(c) || c->sum)
        rc = build_conv_plan(c, p, v, true);
    return rc == DDP_ENODEV ? build_conv_plan(c, p, v, false) : rc;
}

static int make_sum_plan(const struct ddp__call *c, struct ddp__cuda_plan *p,
                         struct ddp__cuda_variant *v)
{
    return build_conv_plan(c, p, v, true);
}

/* ---- prepare ------------------------------------------------------------ */

static size_t pixels_of_y(const struct ddp__call *c, int n)
{
    struct ddp_shape y = c->buf[ddp__op_xwy(c->op).y].shape;

    return (size_t)n * (size_t)y.h * (size_t)y.w;
}

/* Elements of the weight as cuDNN has it: as wide as x. */
static size_t wide_weight_len(const struct ddp__call *c)
{
    size_t len = ddp__cuda_weight_len(c);

    return c->conv.in ? len / (size_t)c->conv.in *
                            (size_t)c->buf[ddp__op_xwy(c->op).x].shape.c
                      : len;
}

/* Scratch for weights and bias where they are not aligned or not as wide; for
 * the gradient and for sums of the bias gradient. */
static size_t conv_side_bytes(const struct ddp__call *c)
{
    size_t weights =
        ddp__cuda_round(wide_weight_len(c) * ddp__dtype_size(type_of(c)));
    size_t o = (size_t)c->buf[ddp__op_xwy(c->op).y].shape.c;

    if (c->op == DDP__OP_CONV_BWD_W)
        return weights + ddp__cuda_round(ddp__columns_scratch(1, (int)o));
    return weights + ddp__cuda_round(4 * o);
}

/* Bytes of a gradient that is written before it is added. */
static size_t gradient_bytes(const struct ddp__call *c, int n)
{
    struct ddp_shape x = c->buf[DDP__CONV_BWD_X_DX].shape;

    return (size_t)n * (size_t)x.h * (size_t)x.w * (size_t)x.c *
           ddp__dtype_size(type_of(c));
}

/* Where no engine adds, for one of the numbers of samples, the gradient goes to
 * scratch first. */
static int prepare_sum(const struct ddp__call *c, void **plan)
{
    size_t side = conv_side_bytes(c);
    int rc = ddp__cuda_plan_new(c, make_sum_plan, side, plan);

    if (rc != DDP_ENODEV)
        return rc;
    side += ddp__cuda_round(gradient_bytes(c, c->cap));
    return ddp__cuda_plan_new(c, make_conv_plan, side, plan);
}

int ddp__cuda_conv_prepare(const struct ddp__call *c, void **plan)
{
    int rc = ddp__call_one_type(c, DDP__CUDA_TYPES);

    if (rc < 0)
        return rc;
    if (c->conv.in && c->op == DDP__OP_CONV_BWD_X)
        return ddp__fail(DDP_ENODEV, "conv: a gradient with channels added");
    return c->sum ? prepare_sum(c, plan)
                  : ddp__cuda_plan_new(c, make_conv_plan, conv_side_bytes(c),
                                       plan);
}

/* ---- tasks -------------------------------------------------------------- */

/* The bias, behind the weight, in the type of w. */
static const void *bias_after(const struct ddp__task *t, const void *w,
                              enum ddp_dtype of)
{
    if (!t->call->conv.bias)
        return NULL;
    return (const char *)w +
           ddp__cuda_weight_len(t->call) * ddp__dtype_size(of);
}

/* What a plan without epilogue leaves to do. */
static int finish_conv(const struct ddp__task *t, const struct ddp__cuda_run *r)
{
    const struct ddp__call *c = t->call;

    if (r->variant->fused || (!c->conv.bias && c->conv.act == DDP_IDENTITY))
        return 0;
    return ddp__cuda_bias_act(r, type_of(c), t->data[DDP__CONV_FWD_Y],
                              bias_after(t, t->data[DDP__CONV_FWD_W], DDP_F32),
                              c->conv.act, pixels_of_y(c, t->n),
                              (size_t)c->buf[DDP__CONV_FWD_Y].shape.c);
}

/* The weight with zeros for the channels that only x has. */
static const void *widen_weight(const struct ddp__task *t,
                                struct ddp__cuda_run *r)
{
    const struct ddp__call *c = t->call;
    void *w =
        ddp__cuda_take(r, wide_weight_len(c) * ddp__dtype_size(type_of(c)));
    size_t rows = ddp__cuda_weight_len(c) / (size_t)c->conv.in;

    return ddp__cuda_convert(t->data[DDP__CONV_FWD_W], w, type_of(c), rows,
                             c->conv.in, c->buf[DDP__CONV_FWD_X].shape.c) < 0
               ? NULL
               : w;
}

/* The weight, and the bias if that is fused, in the layout that cuDNN needs. */
static int conv_parameters(const struct ddp__task *t, struct ddp__cuda_run *r,
                           const void **w, const void **b)
{
    const struct ddp__call *c = t->call;
    size_t size = ddp__dtype_size(type_of(c));

    if (!(*w = ddp__cuda_weights(t, DDP__CONV_FWD_W, type_of(c))))
        return ddp_errcode();
    *b = r->variant->fused ? bias_after(t, *w, type_of(c)) : NULL;
    if (*b && !(*b = ddp__cuda_align(
                    r, *b, (size_t)c->buf[DDP__CONV_FWD_Y].shape.c * size)))
        return DDP_EDEVICE;
    *w = c->conv.in ? widen_weight(t, r)
                    : ddp__cuda_align(r, *w, ddp__cuda_weight_len(c) * size);
    return *w ? 0 : DDP_EDEVICE;
}

int ddp__cuda_conv_fwd(const struct ddp__task *t)
{
    struct ddp__cuda_run r;
    const void *p[CONV_TENSORS] = {[CONV_X] = t->data[DDP__CONV_FWD_X],
                                   [CONV_Y] = t->data[DDP__CONV_FWD_Y]};
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0 || (rc = conv_parameters(t, &r, &p[CONV_W], &p[CONV_BIAS])) < 0)
        return rc;
    rc = ddp__cudnn_run(r.variant->dnn, r.worker, p, r.workspace);
    return rc < 0 ? rc : finish_conv(t, &r);
}

int ddp__cuda_conv_bwd_x(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    size_t size = ddp__dtype_size(type_of(c));
    void *dx = t->data[DDP__CONV_BWD_X_DX];
    struct ddp__cuda_run r;
    const void *p[CONV_TENSORS] = {
        [CONV_Y] = t->data[DDP__CONV_BWD_X_DY], [CONV_X] = dx};
    const void *w;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!(w = ddp__cuda_weights(t, DDP__CONV_BWD_X_W, type_of(c))) ||
        !(w = ddp__cuda_align(&r, w, ddp__cuda_weight_len(c) * size)))
        return ddp_errcode();
    p[CONV_W] = w;
    if (c->sum && !r.variant->fused)
        p[CONV_X] = ddp__cuda_take(&r, gradient_bytes(c, t->n));
    rc = ddp__cudnn_run(r.variant->dnn, r.worker, p, r.workspace);
    if (rc < 0 || !c->sum || r.variant->fused)
        return rc;
    return ddp__cuda_add_to(dx, p[CONV_X], type_of(c),
                            gradient_bytes(c, t->n) / size);
}

/* cuDNN overwrites and does not add, and its fast engines write the type of
 * activations: dw goes to scratch and is then added to g in f32. */
int ddp__cuda_conv_bwd_w(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    size_t len = ddp__cuda_weight_len(c);
    int o = c->buf[DDP__CONV_BWD_W_DY].shape.c, in = (int)(len / (size_t)o),
        wide = in;
    struct ddp__cuda_run r;
    const void *p[CONV_TENSORS] = {[CONV_X] = t->data[DDP__CONV_BWD_W_X],
                                   [CONV_Y] = t->data[DDP__CONV_BWD_W_DY]};
    float *g = t->data[DDP__CONV_BWD_W_G];
    void *dw;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (c->conv.in) {
        in = c->conv.in;
        wide = c->buf[DDP__CONV_BWD_W_X].shape.c;
    }
    dw = ddp__cuda_take(&r, wide_weight_len(c) * ddp__dtype_size(type_of(c)));
    p[CONV_W] = dw;
    if ((rc = ddp__cudnn_run(r.variant->dnn, r.worker, p, r.workspace)) < 0 ||
        (rc = ddp__cuda_accumulate(dw, type_of(c), g, len / (size_t)in, in,
                                   wide, t->accumulate)) < 0 ||
        !c->conv.bias)
        return rc;
    return ddp__cuda_sum_rows(t->data[DDP__CONV_BWD_W_DY], type_of(c), g + len,
                              pixels_of_y(c, t->n), o, t->accumulate, r.side);
}
