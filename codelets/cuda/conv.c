/* conv.c - convolutions by cuDNN
 *
 * Weights go in as activations' type, sums are f32.  A gradient of weights
 * comes out in activations' type, as cuDNN's fast engines have it, and is
 * added to g in f32.  Where x has more channels than the weights, these are
 * made wider with zeros, and their gradient loses what belongs to those.
 */
#include "config.h"

#include "base/error.h"
#include "variant.h"

/* Which buffers are x and y, or their gradients. */
struct sides {
    int x, y;
};

static struct sides sides(const struct ddp__call *c)
{
    switch (c->op) {
    case DDP__OP_CONV_BWD_X:
        return (struct sides){2, 0};
    case DDP__OP_CONV_BWD_W:
        return (struct sides){0, 1};
    default:
        return (struct sides){0, 2};
    }
}

static enum ddp_dtype type(const struct ddp__call *c)
{
    return c->buf[0].type;
}

/* ---- graphs ------------------------------------------------------------- */

static void add_xwy(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                    int n, bool y_virtual)
{
    struct ddp__cudnn_shape x = ddp__cudnn_view(c, sides(c).x, n);
    struct ddp__cudnn_shape y = ddp__cudnn_view(c, sides(c).y, n);
    struct ddp__cudnn_shape w = {.type = x.type,
                                 .n = y.c,
                                 .h = c->conv.kh,
                                 .w = c->conv.kw,
                                 .c = x.c / c->conv.groups};

    if (y_virtual) {
        y.kind = DDP__CUDNN_VIRTUAL;
        y.type = CUDNN_DATA_FLOAT;
    }
    ddp__cudnn_tensor(g, 'x', &x);
    ddp__cudnn_tensor(g, 'w', &w);
    ddp__cudnn_tensor(g, 'y', &y);
}

/* Bias and relu of y, into z. */
static void add_epilogue(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                         int n)
{
    struct ddp__cudnn_shape z = ddp__cudnn_view(c, sides(c).y, n), v = z;
    struct ddp__cudnn_shape b = {
        .type = z.type, .n = 1, .h = 1, .w = 1, .c = z.c};

    v.type = CUDNN_DATA_FLOAT;
    v.kind = DDP__CUDNN_VIRTUAL;
    ddp__cudnn_tensor(g, 'b', &b);
    ddp__cudnn_tensor(g, 'z', &z);
    if (c->conv.act == DDP_RELU) {
        ddp__cudnn_tensor(g, 'v', &v);
        ddp__cudnn_add(g, 'y', 'b', 'v');
        ddp__cudnn_relu(g, 'v', 'z');
    } else {
        ddp__cudnn_add(g, 'y', 'b', 'z');
    }
}

static int build(const struct ddp__call *c, struct ddp__cuda_plan *p,
                 struct ddp__cuda_variant *v, bool fused)
{
    static const enum ddp__cudnn_pass pass[] = {
        [DDP__OP_CONV_FWD] = DDP__CUDNN_FORWARD,
        [DDP__OP_CONV_BWD_X] = DDP__CUDNN_DATA,
        [DDP__OP_CONV_BWD_W] = DDP__CUDNN_FILTER};
    struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();

    if (!g)
        return DDP_ENOMEM;
    add_xwy(g, c, v->n, fused);
    ddp__cudnn_conv(g, pass[c->op], &c->conv, 'x', 'w', 'y');
    if (fused)
        add_epilogue(g, c, v->n);
    v->fused = fused;
    return ddp__cudnn_plan_get(g, p->limit, v->n == c->cap, &v->dnn);
}

/* Whether cuDNN has fast engines with the call's epilogue: with a bias of the
 * activations' type, not with relu alone. */
static bool fuses(const struct ddp__call *c)
{
    return c->op == DDP__OP_CONV_FWD && c->conv.bias &&
           (c->conv.act == DDP_RELU || c->conv.act == DDP_IDENTITY);
}

static int make(const struct ddp__call *c, struct ddp__cuda_plan *p,
                struct ddp__cuda_variant *v)
{
    int rc = DDP_ENODEV;

    if (fuses(c))
        rc = build(c, p, v, true);
    return rc == DDP_ENODEV ? build(c, p, v, false) : rc;
}

/* ---- prepare ------------------------------------------------------------ */

static size_t pixels(const struct ddp__call *c, int n)
{
    struct ddp_shape y = c->buf[sides(c).y].shape;

    return (size_t)n * (size_t)y.h * (size_t)y.w;
}

/* Elements of the weight as cuDNN has it: as wide as x. */
static size_t wide_len(const struct ddp__call *c)
{
    size_t len = ddp__cuda_weight_len(c);

    return c->conv.in
               ? len / (size_t)c->conv.in * (size_t)c->buf[sides(c).x].shape.c
               : len;
}

/* Scratch for weights and bias where they are not aligned or not as wide; for
 * the gradient and for sums of the bias gradient. */
static size_t side(const struct ddp__call *c)
{
    size_t weights = ddp__cuda_round(wide_len(c) * ddp__dtype_size(type(c)));
    size_t o = (size_t)c->buf[sides(c).y].shape.c;

    if (c->op == DDP__OP_CONV_BWD_W)
        return weights + ddp__cuda_round(ddp__columns_scratch(1, (int)o));
    return weights + ddp__cuda_round(4 * o);
}

int ddp__cuda_conv_prepare(const struct ddp__call *c, void **plan)
{
    if (c->buf[sides(c).x].type != c->buf[sides(c).y].type)
        return ddp__fail(DDP_ENODEV, "conv: activations of different types");
    if (c->conv.in && c->op == DDP__OP_CONV_BWD_X)
        return ddp__fail(DDP_ENODEV, "conv: a gradient with channels added");
    return ddp__cuda_plan_new(c, make, side(c), plan);
}

/* ---- tasks -------------------------------------------------------------- */

/* The bias, behind the weight, in the type of w. */
static const void *bias(const struct ddp__task *t, const void *w,
                        enum ddp_dtype of)
{
    if (!t->call->conv.bias)
        return NULL;
    return (const char *)w +
           ddp__cuda_weight_len(t->call) * ddp__dtype_size(of);
}

/* What a plan without epilogue leaves to do. */
static int finish(const struct ddp__task *t, const struct ddp__cuda_run *r)
{
    const struct ddp__call *c = t->call;

    if (r->variant->fused || (!c->conv.bias && c->conv.act == DDP_IDENTITY))
        return 0;
    return ddp__cuda_bias_act(r, type(c), t->data[2],
                              bias(t, t->data[1], DDP_F32), c->conv.act,
                              pixels(c, t->n), (size_t)c->buf[2].shape.c);
}

/* The weight with zeros for the channels that only x has. */
static const void *widen(const struct ddp__task *t, struct ddp__cuda_run *r)
{
    const struct ddp__call *c = t->call;
    void *w = ddp__cuda_take(r, wide_len(c) * ddp__dtype_size(type(c)));
    size_t rows = ddp__cuda_weight_len(c) / (size_t)c->conv.in;

    return ddp__cuda_convert(t->data[1], w, type(c), rows, c->conv.in,
                             c->buf[0].shape.c) < 0
               ? NULL
               : w;
}

/* The weight, and the bias if that is fused, as cuDNN wants them. */
static int parameters(const struct ddp__task *t, struct ddp__cuda_run *r,
                      const void **w, const void **b)
{
    const struct ddp__call *c = t->call;
    size_t size = ddp__dtype_size(type(c));

    if (!(*w = ddp__cuda_weights(t, 1, type(c))))
        return DDP_EDEVICE;
    *b = r->variant->fused ? bias(t, *w, type(c)) : NULL;
    if (*b && !(*b = ddp__cuda_align(r, *b, (size_t)c->buf[2].shape.c * size)))
        return DDP_EDEVICE;
    *w = c->conv.in ? widen(t, r)
                    : ddp__cuda_align(r, *w, ddp__cuda_weight_len(c) * size);
    return *w ? 0 : DDP_EDEVICE;
}

int ddp__cuda_conv_fwd(const struct ddp__task *t)
{
    struct ddp__cuda_run r;
    const void *w, *b;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0 || (rc = parameters(t, &r, &w, &b)) < 0)
        return rc;
    rc = ddp__cudnn_run(
        r.variant->dnn, r.worker, b ? "xwzb" : "xwy",
        (void *[]){t->data[0], (void *)w, t->data[2], (void *)b}, r.workspace);
    return rc < 0 ? rc : finish(t, &r);
}

int ddp__cuda_conv_bwd_x(const struct ddp__task *t)
{
    size_t size = ddp__dtype_size(type(t->call));
    struct ddp__cuda_run r;
    const void *w;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!(w = ddp__cuda_weights(t, 1, type(t->call))) ||
        !(w = ddp__cuda_align(&r, w, ddp__cuda_weight_len(t->call) * size)))
        return DDP_EDEVICE;
    return ddp__cudnn_run(r.variant->dnn, r.worker, "ywx",
                          (void *[]){t->data[0], (void *)w, t->data[2]},
                          r.workspace);
}

int ddp__cuda_conv_bwd_w(const struct ddp__task *t)
{
    const struct ddp__call *c = t->call;
    size_t len = ddp__cuda_weight_len(c);
    int o = c->buf[1].shape.c, in = (int)(len / (size_t)o), wide = in;
    struct ddp__cuda_run r;
    float *g = t->data[2];
    void *dw;
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (c->conv.in) {
        in = c->conv.in;
        wide = c->buf[0].shape.c;
    }
    dw = ddp__cuda_take(&r, wide_len(c) * ddp__dtype_size(type(c)));
    if ((rc = ddp__cudnn_run(r.variant->dnn, r.worker, "xyw",
                             (void *[]){t->data[0], t->data[1], dw},
                             r.workspace)) < 0 ||
        (rc = ddp__cuda_accumulate(dw, type(c), g, len / (size_t)in, in, wide,
                                   t->accumulate)) < 0 ||
        !c->conv.bias)
        return rc;
    return ddp__cuda_sum_rows(t->data[1], type(c), g + len, pixels(c, t->n), o,
                              t->accumulate, r.side);
}
