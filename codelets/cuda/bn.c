/* bn.c - batch norm by cuDNN, or by libddp's kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * cuDNN has engines for channels in groups of 8 (f32: 4) and for relu.  Its
 * backward makes the relu's slope from x once more, so y is not read; with a
 * residual it could not, and reads a mask that forward wrote.  Evaluation is
 * one pass over x, by a kernel of libddp.
 */
#include "config.h"

#include "backend.h"
#include "bn.h"
#include "bn_kernels.h"
#include "gpu/after.h"
#include "launch.h"
#include "prepare.h"
#include "variant.h"

/* ---- graphs ------------------------------------------------------------- */

_Static_assert((int)BN_TENSORS <= (int)DDP__CUDNN_MAX_TENSORS,
               "a graph has room for the tensors of batch norm");

static void add_tensor(struct ddp__cudnn_graph *g, int tensor,
                       struct ddp__cudnn_shape s, enum ddp__cudnn_kind kind,
                       cudnnDataType_t type)
{
    s.kind = kind;
    s.type = type;
    ddp__cudnn_tensor(g, tensor, &s);
}

/* f32, one per channel; or one in all. */
static void add_vector(struct ddp__cudnn_graph *g, int tensor, int c)
{
    add_tensor(g, tensor,
               (struct ddp__cudnn_shape){.n = 1, .h = 1, .w = 1, .c = c},
               DDP__CUDNN_REAL, CUDNN_DATA_FLOAT);
}

static void add_number(struct ddp__cudnn_graph *g, int tensor)
{
    add_tensor(g, tensor,
               (struct ddp__cudnn_shape){.n = 1, .h = 1, .w = 1, .c = 1},
               DDP__CUDNN_SCALAR, CUDNN_DATA_FLOAT);
}

/* A bit of each value. */
static void add_mask(struct ddp__cudnn_graph *g, int tensor,
                     struct ddp__cudnn_shape s)
{
    add_tensor(g, tensor, s, DDP__CUDNN_REAL, CUDNN_DATA_BOOLEAN);
}

/* A result for the next operation of the graph, or the last one, y. */
static int add_between(struct ddp__cudnn_graph *g, int tensor, bool last,
                       struct ddp__cudnn_shape s)
{
    if (last)
        add_tensor(g, BN_Y, s, DDP__CUDNN_REAL, s.type);
    else
        add_tensor(g, tensor, s, DDP__CUDNN_VIRTUAL, CUDNN_DATA_FLOAT);
    return last ? BN_Y : tensor;
}

/* y = act(norm(x) + r); also mean, inv and the mask of y > 0 */
static void build_forward_graph(struct ddp__cudnn_graph *g,
                                const struct ddp__call *c, int n)
{
    struct ddp__cudnn_shape x = ddp__cudnn_view(c, DDP__BN_FWD_X, n);
    struct ddp__cudnn_norm norm = {.x = BN_X,
                                   .scale = BN_SCALE,
                                   .shift = BN_SHIFT,
                                   .eps = BN_EPS,
                                   .mean = BN_MEAN,
                                   .inv = BN_INV};
    bool relu = c->bn.act == DDP_RELU, residual = c->bn.residual;
    int sum;

    ddp__cudnn_tensor(g, BN_X, &x);
    add_vector(g, BN_SCALE, x.c);
    add_vector(g, BN_SHIFT, x.c);
    add_vector(g, BN_MEAN, x.c);
    add_vector(g, BN_INV, x.c);
    add_number(g, BN_EPS);
    norm.y = sum = add_between(g, BN_NORMED, !relu && !residual, x);
    ddp__cudnn_norm(g, &norm);
    if (residual) {
        ddp__cudnn_tensor(g, BN_R, &x);
        sum = add_between(g, BN_SUM, !relu, x);
        ddp__cudnn_add(g, norm.y, BN_R, sum);
    }
    if (relu)
        ddp__cudnn_relu(g, sum, add_between(g, BN_Y, true, x));
    if (c->bn.mask) {
        add_number(g, BN_ZERO);
        add_mask(g, BN_MASK, x);
        ddp__cudnn_greater(g, BN_Y, BN_ZERO, BN_MASK);
    }
}

/* dz = dy act'(y), by the mask, or by y made from x once more; the tensor it
 * is, which without an activation is dy. */
static int add_dz(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                  struct ddp__cudnn_shape x)
{
    if (c->bn.mask) {
        add_mask(g, BN_MASK, x);
        ddp__cudnn_tensor(g, BN_DR, &x);
        ddp__cudnn_choose(g, BN_DY, BN_MASK, BN_DR);
        return BN_DR;
    }
    if (c->bn.act != DDP_RELU)
        return BN_DY;
    add_vector(g, BN_SHIFT, x.c);
    add_tensor(g, BN_NORMED, x, DDP__CUDNN_VIRTUAL, CUDNN_DATA_FLOAT);
    add_tensor(g, BN_DZ, x, DDP__CUDNN_VIRTUAL, x.type);
    ddp__cudnn_norm(g, &(struct ddp__cudnn_norm){.x = BN_X,
                                                 .scale = BN_SCALE,
                                                 .shift = BN_SHIFT,
                                                 .mean = BN_MEAN,
                                                 .inv = BN_INV,
                                                 .y = BN_NORMED});
    ddp__cudnn_relu_bwd(g, BN_NORMED, BN_DY, BN_DZ);
    return BN_DZ;
}

/* dx, and the gradients of scale, of shift, and, with a mask, of the
 * residual. */
static void build_backward_graph(struct ddp__cudnn_graph *g,
                                 const struct ddp__call *c, int n)
{
    struct ddp__cudnn_shape x = ddp__cudnn_view(c, DDP__BN_BWD_X, n);
    struct ddp__cudnn_norm_bwd norm = {.x = BN_X,
                                       .scale = BN_SCALE,
                                       .mean = BN_MEAN,
                                       .inv = BN_INV,
                                       .dscale = BN_DSCALE,
                                       .dshift = BN_DSHIFT,
                                       .dx = BN_DX};

    ddp__cudnn_tensor(g, BN_X, &x);
    ddp__cudnn_tensor(g, BN_DY, &x);
    ddp__cudnn_tensor(g, BN_DX, &x);
    add_vector(g, BN_SCALE, x.c);
    add_vector(g, BN_MEAN, x.c);
    add_vector(g, BN_INV, x.c);
    add_vector(g, BN_DSCALE, x.c);
    add_vector(g, BN_DSHIFT, x.c);
    norm.dy = add_dz(g, c, x);
    ddp__cudnn_norm_bwd(g, &norm);
}

void ddp__cuda_bn_graph(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                        int n)
{
    if (c->op == DDP__OP_BN_FWD)
        build_forward_graph(g, c, n);
    else
        build_backward_graph(g, c, n);
}

/* Whether cuDNN shall be asked.  It writes both halves of stat, which only
 * lie well for channels in groups. */
static bool suits_cudnn(const struct ddp__call *c, struct ddp__cudnn_target *t)
{
    if (c->buf[DDP__BN_FWD_X].shape.c % 4)
        return false;
    if (c->bn.act != DDP_IDENTITY && c->bn.act != DDP_RELU)
        return false;
    if (c->bn.mask && !ddp__cuda_masks_fit(t, c->buf[DDP__BN_FWD_X].type))
        return false;
    return c->op == DDP__OP_BN_FWD ||
           (c->op == DDP__OP_BN_BWD && (!c->bn.residual || c->bn.mask));
}

static int make_bn_plan(const struct ddp__call *c, struct ddp__cuda_plan *p,
                        struct ddp__cuda_variant *v)
{
    struct ddp__cudnn_graph *g;
    int rc;

    if (!suits_cudnn(c, v->target))
        return 0;
    if (!(g = ddp__cudnn_graph_new()))
        return DDP_ENOMEM;
    ddp__cuda_bn_graph(g, c, v->n);
    rc = ddp__cudnn_plan_get(v->target, g, p->limit, v->n == c->cap, &v->dnn);
    if (rc < 0)
        v->dnn = NULL;
    if (rc == DDP_ENODEV)
        ddp__cuda_fell_back(ddp_errmsg());
    return rc == DDP_ENODEV ? 0 : rc;
}

/* A value of each channel. */
static size_t vector_bytes(const struct ddp__call *c)
{
    return ddp__cuda_round(4 * (size_t)c->buf[DDP__BN_FWD_X].shape.c);
}

int ddp__cuda_bn_prepare(const struct ddp__call *c, void **plan)
{
    int rc = ddp__cuda_kernels_prepare(c);

    if (rc < 0)
        return rc;
    ddp__cuda_want_sums(DDP__PUTS * 2 * vector_bytes(c));
    /* Copies of scale and shift, and inv. */
    return ddp__cuda_plan_new(c, make_bn_plan, 3 * vector_bytes(c), plan);
}

/* ---- tasks -------------------------------------------------------------- */

/* Scale and shift where cuDNN can read them. */
static int align_parameters(const struct ddp__task *t, int w,
                            struct ddp__cuda_run *r, const void *p[BN_TENSORS])
{
    size_t c = (size_t)t->call->buf[DDP__BN_FWD_X].shape.c;
    const float *scale = t->data[w];

    p[BN_SCALE] = ddp__cuda_align(r, scale, 4 * c);
    p[BN_SHIFT] = ddp__cuda_align(r, scale + c, 4 * c);
    return p[BN_SCALE] && p[BN_SHIFT] ? 0 : DDP_EDEVICE;
}

/* The arguments of our kernels that describe the statistics, at stat.  On GPUs
 * alone these hold inv, as cuDNN has it; else scratch does. */
static struct ddp__k_bn_given given_statistics(const struct ddp__task *t,
                                               struct ddp__cuda_run *r,
                                               float *stat)
{
    struct ddp_shape x = t->call->buf[DDP__BN_FWD_X].shape;
    double m = (double)t->n * x.h * x.w;
    bool inverse = t->call->bn.inverse;

    return (struct ddp__k_bn_given){
        .blocks = ((unsigned)x.c + DDP__THREADS - 1) / DDP__THREADS,
        .c = x.c,
        .n = t->n,
        .eps = t->call->bn.eps,
        .unbias = (float)(m > 1 ? m / (m - 1) : 1),
        .add = t->accumulate,
        .mean = stat,
        .var = inverse ? NULL : stat + x.c,
        .inv = inverse ? stat + x.c : ddp__cuda_take(r, 4 * (size_t)x.c)};
}

/* cuDNN writes inv: where stat holds variances, bn_var turns one into the other
 * after the run. */
int ddp__cuda_bn_fwd(const struct ddp__task *t)
{
    float eps = t->call->bn.eps, zero = 0, *stat = t->data[DDP__BN_FWD_STAT];
    struct ddp__k_bn_given to;
    struct ddp__cuda_run r;
    const void *p[BN_TENSORS] = {[BN_X] = t->data[DDP__BN_FWD_X],
                                 [BN_EPS] = &eps,
                                 [BN_MEAN] = stat,
                                 [BN_Y] = t->data[DDP__BN_FWD_Y],
                                 [BN_ZERO] = &zero};
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!r.variant->dnn)
        return ddp__cuda_bn_kernels_fwd(t);
    if ((rc = align_parameters(t, DDP__BN_FWD_W, &r, p)) < 0)
        return rc;
    to = given_statistics(t, &r, stat);
    p[BN_INV] = to.inv;
    if (t->call->bn.residual)
        p[BN_R] = t->data[DDP__BN_FWD_R];
    if (t->call->bn.mask)
        p[BN_MASK] = t->data[DDP__BN_FWD_MASK];
    rc = ddp__cudnn_run(r.variant->dnn, r.worker, p, r.workspace);
    if (rc < 0 || t->call->bn.inverse)
        return rc;
    return ddp__cuda_launched(ddp__k_bn_var(&to, r.worker->stream), "bn_var");
}

int ddp__cuda_bn_eval(const struct ddp__task *t)
{
    return ddp__cuda_bn_kernels_eval(t);
}

/* dx, dr, and the gradients of scale and shift where `to` has them. */
static int run_backward_graph(const struct ddp__task *t,
                              struct ddp__cuda_run *r,
                              struct ddp__k_bn_given *to)
{
    const void *p[BN_TENSORS] = {
        [BN_X] = t->data[DDP__BN_BWD_X],
        [BN_DY] = t->data[DDP__BN_BWD_DY],
        [BN_DX] = t->data[DDP__BN_BWD_DX],
        [BN_MEAN] = to->mean,
        [BN_INV] = to->inv,
        [BN_DSCALE] = to->dscale,
        [BN_DSHIFT] = to->dshift,
    };
    int rc;

    if (t->call->bn.mask) {
        p[BN_MASK] = t->data[DDP__BN_BWD_SLOPE];
        p[BN_DR] = t->data[DDP__BN_BWD_DR];
    }

    if ((rc = align_parameters(t, DDP__BN_BWD_W, r, p)) < 0)
        return rc;
    if (!t->call->bn.inverse &&
        (rc = ddp__cuda_launched(ddp__k_bn_inv(to, r->worker->stream),
                                 "bn_inv")) < 0)
        return rc;
    return ddp__cudnn_run(r->variant->dnn, r->worker, p, r->workspace);
}

int ddp__cuda_bn_bwd(const struct ddp__task *t)
{
    struct ddp__k_bn_given to;
    struct ddp__cuda_run r;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!r.variant->dnn)
        return ddp__cuda_bn_kernels_bwd(t);
    to = given_statistics(t, &r, t->data[DDP__BN_BWD_STAT]);
    to.g = t->data[DDP__BN_BWD_G];
    if ((rc = ddp__cuda_bn_sums(r.worker, &to)) < 0 ||
        (rc = run_backward_graph(t, &r, &to)) < 0)
        return rc;
    ddp__cuda_bn_put(r.worker, &to);
    return 0;
}
