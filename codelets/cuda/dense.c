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

#include "base/error.h"
#include "matmul.h"
#include "variant.h"

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
    return c->buf[0].type == DDP_F32 ? alignment(c, 1) : 16;
}

/* The call as BLAS sees it, see the top of this file. */
static struct ddp__cuda_product product_of(const struct ddp__call *c, int n)
{
    struct ddp__cuda_product p = {.type = c->buf[0].type,
                                  .type_d = c->buf[2].type,
                                  .n = (size_t)n,
                                  .tf32 = ddp__cudnn_target.tf32,
                                  .align_a = weight_alignment(c),
                                  .align_b = alignment(c, 0),
                                  .align_d = alignment(c, 2)};

    switch (c->op) {
    case DDP__OP_DENSE_FWD:
        p.transpose_a = true;
        p.m = sample_len(c, 2);
        p.k = sample_len(c, 0);
        p.bias = c->dense.bias;
        p.relu = c->dense.act == DDP_RELU;
        break;
    case DDP__OP_DENSE_BWD_X:
        p.m = sample_len(c, 2);
        p.k = sample_len(c, 0);
        break;
    default: /* DENSE_BWD_W: x, dy, g */
        p.transpose_b = true;
        p.m = sample_len(c, 0);
        p.n = sample_len(c, 1);
        p.k = (size_t)n;
        p.align_a = alignment(c, 0);
        p.align_b = alignment(c, 1);
    }
    return p;
}

/* A fused epilogue that there is no kernel for is left to ours. */
static int make_dense_plan(const struct ddp__call *c, struct ddp__cuda_plan *p,
                           struct ddp__cuda_variant *v)
{
    struct ddp__cuda_product q = product_of(c, v->n);
    int rc = ddp__cuda_matmul_new(&q, p->limit, &v->matmul);

    v->fused = q.bias || q.relu;
    if (rc != DDP_ENODEV || !v->fused)
        return rc;
    q.bias = q.relu = v->fused = false;
    return ddp__cuda_matmul_new(&q, p->limit, &v->matmul);
}

/* Scratch for a bias that is not aligned; for sums of its gradient. */
static size_t dense_side_bytes(const struct ddp__call *c)
{
    if (c->op == DDP__OP_DENSE_BWD_W)
        return ddp__cuda_round(ddp__columns_scratch(1, (int)sample_len(c, 1)));
    return ddp__cuda_round(4 * sample_len(c, 2));
}

int ddp__cuda_dense_prepare(const struct ddp__call *c, void **plan)
{
    int y = c->op == DDP__OP_DENSE_BWD_W ? 1 : 2;

    if (c->buf[0].type != c->buf[y].type)
        return ddp__fail(DDP_ENODEV, "dense: activations of different types");
    return ddp__cuda_plan_new(c, make_dense_plan, dense_side_bytes(c), plan);
}

/* ---- tasks -------------------------------------------------------------- */

/* What the product left to do: all of the epilogue, or an activation that
 * cuBLASLt has not. */
static int finish_dense(const struct ddp__task *t,
                        const struct ddp__cuda_run *r)
{
    const struct ddp__call *c = t->call;
    bool fused = r->variant->fused;
    const float *b = (const float *)t->data[1] + ddp__cuda_weight_len(c);
    enum ddp_act act =
        fused && c->dense.act == DDP_RELU ? DDP_IDENTITY : c->dense.act;

    if (fused || !c->dense.bias)
        b = NULL;
    if (!b && act == DDP_IDENTITY)
        return 0;
    return ddp__cuda_bias_act(r, c->buf[2].type, t->data[2], b, act,
                              (size_t)t->n, sample_len(c, 2));
}

int ddp__cuda_dense_fwd(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    size_t size = ddp__dtype_size(c->buf[0].type);
    const void *w, *b = NULL;
    struct ddp__cuda_run r;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!(w = ddp__cuda_weights(t, 1, c->buf[0].type)))
        return DDP_EDEVICE;
    if (r.variant->fused && c->dense.bias &&
        !(b = ddp__cuda_align(&r,
                              (const char *)w + ddp__cuda_weight_len(c) * size,
                              sample_len(c, 2) * size)))
        return DDP_EDEVICE;
    rc = ddp__cuda_matmul_run(r.variant->matmul, r.worker, w, t->data[0], b,
                              t->data[2], false, r.workspace);
    return rc < 0 ? rc : finish_dense(t, &r);
}

int ddp__cuda_dense_bwd_x(const struct ddp__task *t)
{
    struct ddp__cuda_run r;
    const void *w;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!(w = ddp__cuda_weights(t, 1, t->call->buf[0].type)))
        return DDP_EDEVICE;
    return ddp__cuda_matmul_run(r.variant->matmul, r.worker, w, t->data[0],
                                NULL, t->data[2], false, r.workspace);
}

int ddp__cuda_dense_bwd_w(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    struct ddp__cuda_run r;
    float *g = t->data[2];
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0 ||
        (rc = ddp__cuda_matmul_run(r.variant->matmul, r.worker, t->data[0],
                                   t->data[1], NULL, g, t->accumulate,
                                   r.workspace)) < 0 ||
        !c->dense.bias)
        return rc;
    return ddp__cuda_sum_rows(t->data[1], c->buf[1].type,
                              g + ddp__cuda_weight_len(c), (size_t)t->n,
                              (int)sample_len(c, 1), t->accumulate, r.side);
}
