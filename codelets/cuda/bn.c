/* bn.c - batch norm by cuDNN, or by kernels of our own
 *
 * cuDNN has engines for channels in groups of 8 (f32: 4) and for relu.  Its
 * backward makes the relu's slope from x once more, so y is not read; with a
 * residual it could not, and reads a mask that forward wrote.  Evaluation is
 * one pass over x, by a kernel of our own.
 */
#include "config.h"

#include "gpu/after.h"
#include "variant.h"

/* ---- graphs ------------------------------------------------------------- */

static void add_tensor(struct ddp__cudnn_graph *g, char name,
                       struct ddp__cudnn_shape s, enum ddp__cudnn_kind kind,
                       cudnnDataType_t type)
{
    s.kind = kind;
    s.type = type;
    ddp__cudnn_tensor(g, name, &s);
}

/* f32, one per channel; or one in all. */
static void add_vector(struct ddp__cudnn_graph *g, char name, int c)
{
    add_tensor(g, name,
               (struct ddp__cudnn_shape){.n = 1, .h = 1, .w = 1, .c = c},
               DDP__CUDNN_REAL, CUDNN_DATA_FLOAT);
}

static void add_number(struct ddp__cudnn_graph *g, char name)
{
    add_tensor(g, name,
               (struct ddp__cudnn_shape){.n = 1, .h = 1, .w = 1, .c = 1},
               DDP__CUDNN_SCALAR, CUDNN_DATA_FLOAT);
}

/* A bit of each value. */
static void add_mask(struct ddp__cudnn_graph *g, char name,
                     struct ddp__cudnn_shape s)
{
    add_tensor(g, name, s, DDP__CUDNN_REAL, CUDNN_DATA_BOOLEAN);
}

/* What comes next is from..: a virtual tensor, or z, the last. */
static char between(struct ddp__cudnn_graph *g, char name, bool last,
                    struct ddp__cudnn_shape s)
{
    if (last)
        add_tensor(g, 'z', s, DDP__CUDNN_REAL, s.type);
    else
        add_tensor(g, name, s, DDP__CUDNN_VIRTUAL, CUDNN_DATA_FLOAT);
    return last ? 'z' : name;
}

/* z = act(norm(x) + r); also mean m, inv i and mask k of z > o */
static void forward_graph(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                          int n)
{
    struct ddp__cudnn_shape x = ddp__cudnn_view(c, 0, n);
    bool relu = c->bn.act == DDP_RELU, residual = c->bn.residual;
    char y, sum;

    ddp__cudnn_tensor(g, 'x', &x);
    add_vector(g, 's', x.c);
    add_vector(g, 'b', x.c);
    add_vector(g, 'm', x.c);
    add_vector(g, 'i', x.c);
    add_number(g, 'e');
    y = sum = between(g, 'y', !relu && !residual, x);
    ddp__cudnn_norm(g, 'x', 's', 'b', 'e', 'm', 'i', y);
    if (residual) {
        ddp__cudnn_tensor(g, 'r', &x);
        sum = between(g, 'v', !relu, x);
        ddp__cudnn_add(g, y, 'r', sum);
    }
    if (relu)
        ddp__cudnn_relu(g, sum, between(g, 'z', true, x));
    if (c->bn.mask) {
        add_number(g, 'o');
        add_mask(g, 'k', x);
        ddp__cudnn_greater(g, 'z', 'o', 'k');
    }
}

/* z = dx; also p, the gradient of scale, q, of shift, and with mask k r, of the
 * residual */
static void backward_graph(struct ddp__cudnn_graph *g,
                           const struct ddp__call *c, int n)
{
    struct ddp__cudnn_shape x = ddp__cudnn_view(c, 0, n);
    char d = 'd';

    ddp__cudnn_tensor(g, 'x', &x);
    ddp__cudnn_tensor(g, 'd', &x);
    ddp__cudnn_tensor(g, 'z', &x);
    for (const char *v = "smipq"; *v; v++)
        add_vector(g, *v, x.c);
    if (c->bn.mask) {
        add_mask(g, 'k', x);
        ddp__cudnn_tensor(g, 'r', &x);
        ddp__cudnn_choose(g, 'd', 'k', 'r');
        d = 'r';
    } else if (c->bn.act == DDP_RELU) {
        add_vector(g, 'b', x.c);
        add_tensor(g, 'y', x, DDP__CUDNN_VIRTUAL, CUDNN_DATA_FLOAT);
        add_tensor(g, 'u', x, DDP__CUDNN_VIRTUAL, x.type);
        ddp__cudnn_norm(g, 'x', 's', 'b', 0, 'm', 'i', 'y');
        ddp__cudnn_relu_bwd(g, 'y', 'd', 'u');
        d = 'u';
    }
    ddp__cudnn_norm_bwd(g, 'x', d, 's', 'm', 'i', 'p', 'q', 'z');
}

void ddp__cuda_bn_graph(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                        int n)
{
    if (c->op == DDP__OP_BN_FWD)
        forward_graph(g, c, n);
    else
        backward_graph(g, c, n);
}

/* Whether cuDNN shall be asked. */
static bool suits(const struct ddp__call *c)
{
    if (c->bn.act != DDP_IDENTITY && c->bn.act != DDP_RELU)
        return false;
    if (c->bn.mask && !ddp__cuda_masks_fit(c->buf[0].type))
        return false;
    return c->op == DDP__OP_BN_FWD ||
           (c->op == DDP__OP_BN_BWD && (!c->bn.residual || c->bn.mask));
}

static int make(const struct ddp__call *c, struct ddp__cuda_plan *p,
                struct ddp__cuda_variant *v)
{
    struct ddp__cudnn_graph *g;
    int rc;

    if (!suits(c))
        return 0;
    if (!(g = ddp__cudnn_graph_new()))
        return DDP_ENOMEM;
    ddp__cuda_bn_graph(g, c, v->n);
    rc = ddp__cudnn_plan_get(g, p->limit, v->n == c->cap, &v->dnn);
    if (rc < 0)
        v->dnn = NULL;
    return rc == DDP_ENODEV ? 0 : rc;
}

/* Scratch for copies of scale and shift, for inv, dscale and dshift. */
static size_t side(const struct ddp__call *c)
{
    return 5 * ddp__cuda_round(4 * (size_t)c->buf[0].shape.c);
}

int ddp__cuda_bn_prepare(const struct ddp__call *c, void **plan)
{
    int rc = ddp__cuda_kernels_prepare(c);

    return rc < 0 ? rc : ddp__cuda_plan_new(c, make, side(c), plan);
}

/* ---- tasks -------------------------------------------------------------- */

/* Scale and shift where cuDNN can read them. */
static int parameters(const struct ddp__task *t, int w, struct ddp__cuda_run *r,
                      const void *p[2])
{
    size_t c = (size_t)t->call->buf[0].shape.c;
    const float *scale = t->data[w];

    p[0] = ddp__cuda_align(r, scale, 4 * c);
    p[1] = ddp__cuda_align(r, scale + c, 4 * c);
    return p[0] && p[1] ? 0 : DDP_EDEVICE;
}

/* What our kernels are told of the statistics, at stat. */
static struct ddp__k_bn_given given(const struct ddp__task *t, float *stat,
                                    float *inv)
{
    struct ddp_shape x = t->call->buf[0].shape;
    double m = (double)t->n * x.h * x.w;

    return (struct ddp__k_bn_given){
        .blocks = ((unsigned)x.c + DDP__THREADS - 1) / DDP__THREADS,
        .c = x.c,
        .n = t->n,
        .eps = t->call->bn.eps,
        .unbias = (float)(m > 1 ? m / (m - 1) : 1),
        .add = t->accumulate,
        .mean = stat,
        .var = stat + x.c,
        .inv = inv};
}

int ddp__cuda_bn_fwd(const struct ddp__task *t)
{
    float eps = t->call->bn.eps, zero = 0, *stat = t->data[3];
    struct ddp__k_bn_given to;
    struct ddp__cuda_run r;
    const void *p[2];
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!r.variant->dnn)
        return ddp__cuda_bn_own_fwd(t);
    if ((rc = parameters(t, 1, &r, p)) < 0)
        return rc;
    to =
        given(t, stat, ddp__cuda_take(&r, 4 * (size_t)t->call->buf[0].shape.c));
    rc = ddp__cudnn_run(r.variant->dnn, r.worker,
                        t->call->bn.mask       ? "xsbemizrko"
                        : t->call->bn.residual ? "xsbemizr"
                                               : "xsbemiz",
                        (void *[]){t->data[0], (void *)p[0], (void *)p[1], &eps,
                                   stat, to.inv, t->data[2], t->data[4],
                                   t->data[5], &zero},
                        r.workspace);
    if (rc < 0)
        return rc;
    return ddp__cuda_launched(ddp__k_bn_var(&to, r.worker->stream), "bn_var");
}

int ddp__cuda_bn_eval(const struct ddp__task *t)
{
    return ddp__cuda_bn_own_eval(t);
}

/* dx, dr, and the gradients of scale and shift at d[0] and d[1]. */
static int backward(const struct ddp__task *t, struct ddp__cuda_run *r,
                    struct ddp__k_bn_given *to, float *d[2])
{
    bool mask = t->call->bn.mask, relu = t->call->bn.act == DDP_RELU;
    const void *p[2];
    int rc;

    if ((rc = parameters(t, 3, r, p)) < 0 ||
        (rc = ddp__cuda_launched(ddp__k_bn_inv(to, r->worker->stream),
                                 "bn_inv")) < 0)
        return rc;
    return ddp__cudnn_run(
        r->variant->dnn, r->worker,
        mask   ? "xdzsmipqkr"
        : relu ? "xdzsmipqb"
               : "xdzsmipq",
        (void *[]){t->data[0], t->data[2], t->data[6], (void *)p[0],
                   (void *)to->mean, to->inv, d[0], d[1],
                   mask ? t->data[1] : (void *)p[1], t->data[7]},
        r->workspace);
}

int ddp__cuda_bn_bwd(const struct ddp__task *t)
{
    size_t size = 4 * (size_t)t->call->buf[0].shape.c;
    struct ddp__k_bn_given to;
    struct ddp__cuda_run r;
    float *d[2];
    int rc = ddp__cuda_run(t, &r);

    if (rc < 0)
        return rc;
    if (!r.variant->dnn)
        return ddp__cuda_bn_own_bwd(t);
    to = given(t, t->data[4], ddp__cuda_take(&r, size));
    to.dscale = d[0] = ddp__cuda_take(&r, size);
    to.dshift = d[1] = ddp__cuda_take(&r, size);
    to.g = t->data[5];
    if ((rc = backward(t, &r, &to, d)) < 0)
        return rc;
    return ddp__cuda_launched(ddp__k_bn_put(&to, r.worker->stream), "bn_put");
}
