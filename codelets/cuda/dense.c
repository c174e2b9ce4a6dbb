/* dense.c - fully connected layers by cuBLASLt
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Rows of ours are columns of BLAS: x is (c, n), y is (o, n), w is (c, o).
 *
 *     forward     y  = w' x      bias and relu in the same kernel
 *     data        dx = w dy
 *     weights     dw = x dy'     f32, added to g by the same kernel
 */
#include "config.h"

#include "backend.h"
#include "base/error.h"
#include "dense.h"
#include "matmul.h"
#include "rows.h"
#include "tasks.h"
#include "variant.h"
#include "weights.h"

/* Operands of forward and of the data gradient: out = in * weight. */
enum {
    IN = DDP__DENSE_FWD_X,
    WEIGHT = DDP__DENSE_FWD_W,
    OUT = DDP__DENSE_FWD_Y
};
_Static_assert((int)DDP__DENSE_BWD_X_DY == (int)IN &&
                   (int)DDP__DENSE_BWD_X_W == (int)WEIGHT &&
                   (int)DDP__DENSE_BWD_X_DX == (int)OUT,
               "product() is for both");

static size_t sample_len(const struct ddp__call *c, int i)
{
    struct ddp_shape s = c->buf[i].shape;

    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

/* The alignment of a view: that of its offset, at most 16 bytes. */
static size_t alignment(const struct ddp__call *c, int i)
{
    size_t at = c->buf[i].offset;

    return at % 16 == 0 ? 16 : at & -at;
}

/* Of weights: those of 16 bits are an aligned copy. */
static size_t weight_alignment(const struct ddp__call *c)
{
    return c->buf[IN].type == DDP_F32 ? alignment(c, WEIGHT) : 16;
}

static struct ddp__cuda_product gradient(const struct ddp__call *c,
                                         const struct ddp__cuda_variant *v)
{
    return (struct ddp__cuda_product){
        .type = c->buf[DDP__DENSE_BWD_W_X].type,
        .type_d = c->buf[DDP__DENSE_BWD_W_G].type,
        .m = sample_len(c, DDP__DENSE_BWD_W_X),
        .n = sample_len(c, DDP__DENSE_BWD_W_DY),
        .k = (size_t)v->n,
        .transpose_b = true,
        .tf32 = v->target->tf32,
        .align_a = alignment(c, DDP__DENSE_BWD_W_X),
        .align_b = alignment(c, DDP__DENSE_BWD_W_DY),
        .align_d = alignment(c, DDP__DENSE_BWD_W_G)};
}

/* The call as BLAS sees it, see the top of this file. */
static struct ddp__cuda_product product_of(const struct ddp__call *c,
                                           const struct ddp__cuda_variant *v)
{
    bool forward = ddp__op_is(c->op, DDP__IS_FWD);

    if (ddp__op_is(c->op, DDP__IS_BWD_W))
        return gradient(c, v);
    return (struct ddp__cuda_product){.type = c->buf[IN].type,
                                      .type_d = c->buf[OUT].type,
                                      .m = sample_len(c, OUT),
                                      .n = (size_t)v->n,
                                      .k = sample_len(c, IN),
                                      .transpose_a = forward,
                                      .bias = forward && c->dense.bias,
                                      .relu =
                                          forward && c->dense.act == DDP_RELU,
                                      .tf32 = v->target->tf32,
                                      .align_a = weight_alignment(c),
                                      .align_b = alignment(c, IN),
                                      .align_d = alignment(c, OUT)};
}

/* A fused epilogue that there is no kernel for is left to ours. */
static int make_dense_plan(const struct ddp__call *c, struct ddp__cuda_plan *p,
                           struct ddp__cuda_variant *v)
{
    struct ddp__cuda_product q = product_of(c, v);
    int rc = ddp__cuda_matmul_new(v->target, &q, p->limit, &v->matmul);

    v->fused = q.bias || q.relu;
    if (rc != DDP_ENODEV || !v->fused)
        return rc;
    q.bias = q.relu = v->fused = false;
    return ddp__cuda_matmul_new(v->target, &q, p->limit, &v->matmul);
}

/* Scratch for a bias that is not aligned; for sums of its gradient. */
static size_t dense_side_bytes(const struct ddp__call *c)
{
    if (c->op == DDP__OP_DENSE_BWD_W)
        return ddp__cuda_round(
            ddp__columns_scratch(1, (int)sample_len(c, DDP__DENSE_BWD_W_DY)));
    return ddp__cuda_round(4 * sample_len(c, OUT));
}

int ddp__cuda_dense_prepare(const struct ddp__call *c, void **plan)
{
    int rc = ddp__call_one_type(c, DDP__CUDA_TYPES);

    return rc < 0 ? rc
                  : ddp__cuda_plan_new(c, make_dense_plan, dense_side_bytes(c),
                                       plan);
}

/* ---- tasks -------------------------------------------------------------- */

/* What the product left to do: all of the epilogue, or an activation that
 * cuBLASLt has not. */
static int finish_dense(const struct ddp__task *t,
                        const struct ddp__cuda_run *r)
{
    const struct ddp__call *c = t->call;
    bool fused = r->variant->fused;
    const float *b =
        (const float *)t->data[DDP__DENSE_FWD_W] + ddp__cuda_weight_len(c);
    enum ddp_act act =
        fused && c->dense.act == DDP_RELU ? DDP_IDENTITY : c->dense.act;

    if (fused || !c->dense.bias)
        b = NULL;
    if (!b && act == DDP_IDENTITY)
        return 0;
    return ddp__cuda_bias_act(r, c->buf[DDP__DENSE_FWD_Y].type,
                              t->data[DDP__DENSE_FWD_Y], b, act, (size_t)t->n,
                              sample_len(c, DDP__DENSE_FWD_Y));
}

int ddp__cuda_dense_fwd(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    size_t size = ddp__dtype_size(c->buf[DDP__DENSE_FWD_X].type);
    const void *w, *b = NULL;
    struct ddp__cuda_run r;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!(w = ddp__cuda_weights(t, DDP__DENSE_FWD_W,
                                c->buf[DDP__DENSE_FWD_X].type)))
        return ddp_errcode();
    if (r.variant->fused && c->dense.bias &&
        !(b = ddp__cuda_align(&r,
                              (const char *)w + ddp__cuda_weight_len(c) * size,
                              sample_len(c, DDP__DENSE_FWD_Y) * size)))
        return DDP_EDEVICE;
    rc = ddp__cuda_matmul_run(r.variant->matmul, r.worker, w,
                              t->data[DDP__DENSE_FWD_X], b,
                              t->data[DDP__DENSE_FWD_Y], false, r.workspace);
    return rc < 0 ? rc : finish_dense(t, &r);
}

int ddp__cuda_dense_bwd_x(const struct ddp__task *t)
{
    struct ddp__cuda_run r;
    const void *w;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!(w = ddp__cuda_weights(t, DDP__DENSE_BWD_X_W,
                                t->call->buf[DDP__DENSE_BWD_X_DY].type)))
        return ddp_errcode();
    return ddp__cuda_matmul_run(
        r.variant->matmul, r.worker, w, t->data[DDP__DENSE_BWD_X_DY], NULL,
        t->data[DDP__DENSE_BWD_X_DX], false, r.workspace);
}

int ddp__cuda_dense_bwd_w(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    struct ddp__cuda_run r;
    float *g = t->data[DDP__DENSE_BWD_W_G];
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0 ||
        (rc = ddp__cuda_matmul_run(r.variant->matmul, r.worker,
                                   t->data[DDP__DENSE_BWD_W_X],
                                   t->data[DDP__DENSE_BWD_W_DY], NULL, g,
                                   t->accumulate, r.workspace)) < 0 ||
        !c->dense.bias)
        return rc;
    return ddp__cuda_sum_rows(
        t->data[DDP__DENSE_BWD_W_DY], c->buf[DDP__DENSE_BWD_W_DY].type,
        g + ddp__cuda_weight_len(c), (size_t)t->n,
        (int)sample_len(c, DDP__DENSE_BWD_W_DY), t->accumulate, r.side);
}
