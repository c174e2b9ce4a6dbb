/* batch_norm.c - batch normalisation, with what follows it fused
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "base/options.h"
#include "graph/graph.h"
#include "graph/node.h"
#include "layers/batch_norm.h"
#include "layers/defaults.h"

struct batch_norm {
    ddp_layer_t layer;
    int channels;
    float eps, momentum;
    bool zero_init;
};

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    const struct batch_norm *b = (const struct batch_norm *)l;

    if (x.c != b->channels)
        return ddp__fail(DDP_ESHAPE,
                         "batch_norm: input has %d channels, expected %d", x.c,
                         b->channels);
    *y = x;
    return 0;
}

static int params(const ddp_layer_t *l, struct ddp_param p[DDP_MAX_PARAMS])
{
    const struct batch_norm *b = (const struct batch_norm *)l;
    int c = b->channels;

    p[0] = (struct ddp_param){
        "weight", DDP_NORM, 1, {c}, .fill = b->zero_init ? 0 : 1};
    p[1] = (struct ddp_param){"bias", DDP_NORM, 1, {c}, .fill = 0};
    p[2] = (struct ddp_param){
        "running_mean", DDP_RUNNING, 1, {c}, .momentum = b->momentum};
    p[3] = (struct ddp_param){
        "running_var", DDP_RUNNING, 1, {c}, .fill = 1, .momentum = b->momentum};
    return 4;
}

static ddp_value_t *forward_inference(struct batch_norm *b, ddp_graph_t *g,
                                      struct ddp_record r)
{
    struct ddp__call call = {
        .op = DDP__OP_BN_EVAL,
        .bn = {.eps = b->eps, .act = r.act, .residual = r.residual != NULL}};

    ddp__emit(
        g, &call,
        DDP__VALUES([DDP__BN_EVAL_X] = r.x,
                    [DDP__BN_EVAL_W] = ddp_graph_param(g, &b->layer),
                    [DDP__BN_EVAL_Y] = r.y, [DDP__BN_EVAL_R] = r.residual));
    return ddp_graph_record(g, &r);
}

/* Backward has to read the residual's sum again, or y: with relu one bit of
 * each value is enough.  Without a residual, x has the same information. */
static ddp_value_t *mask_of(ddp_graph_t *g, const struct ddp_record *r)
{
    struct ddp_shape s = r->y->shape;

    if (!r->residual || r->act != DDP_RELU || s.c % 8)
        return NULL;
    s.c /= 8;
    return ddp_graph_value(g, s, DDP_U8);
}

/* The sums that the statistics of a whole step follow from; NULL: they are
 * those of a sub-batch. */
static ddp_value_t *sum_up(struct batch_norm *b, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp__call call = {.op = DDP__OP_BN_SUM};
    struct ddp__sums sum;

    if (!g->spec.sync_bn)
        return NULL;
    sum = ddp__value_sums(g, 2 * b->channels + 1);
    ddp__emit(g, &call,
              DDP__VALUES([DDP__BN_SUM_X] = x, [DDP__BN_SUM_SUM] = sum.lane));
    return sum.step;
}

/* The deviation of one value is 0: the output would not depend on the input. */
static int check_values(ddp_graph_t *g, struct ddp_shape x)
{
    if (g->spec.least * x.h * x.w != 1)
        return 0;
    return g->rc = ddp__fail(
               DDP_EINVAL,
               "batch norm %s: one value per channel, as the image is one "
               "pixel here and the smallest %s one sample: use another "
               "batch or sub-batch size, drop_last, or larger images",
               g->path, g->spec.sync_bn ? "step" : "sub-batch");
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct batch_norm *b = (struct batch_norm *)l;
    struct ddp_record r = {.layer = l,
                           .x = x,
                           .y = ddp__value_like(g, x->shape),
                           .residual = ddp__take_residual(g),
                           .act = ddp__take_act(g)};
    struct ddp__call call = {.op = g->spec.sync_bn ? DDP__OP_BN_SYNC
                                                   : DDP__OP_BN_FWD};
    ddp_value_t *sum;

    if (!ddp_graph_training(g) || !ddp__graph_trains(g, l))
        return forward_inference(b, g, r);
    if (check_values(g, x->shape) < 0)
        return NULL;
    sum = sum_up(b, g, x);
    r.saved = ddp__value_vector(g, 2 * b->channels + (sum != NULL), DDP_F32);
    r.mask = mask_of(g, &r);
    call.bn.eps = b->eps;
    call.bn.act = r.act;
    call.bn.residual = r.residual != NULL;
    call.bn.mask = r.mask != NULL;
    call.bn.inverse = g->spec.on_gpus && !sum;
    ddp__emit(g, &call,
              DDP__VALUES(
                  [DDP__BN_FWD_X] = x, [DDP__BN_FWD_W] = ddp_graph_param(g, l),
                  [DDP__BN_FWD_Y] = r.y, [DDP__BN_FWD_STAT] = r.saved,
                  [DDP__BN_FWD_R] = r.residual, [DDP__BN_FWD_MASK] = r.mask,
                  [DDP__BN_SYNC_SUM] = sum));
    return ddp_graph_record(g, &r);
}

/* What backward reads for the slope.  Without an activation, or with one of
 * which x tells it, y is not read and need not be kept. */
static ddp_value_t *slope_of(const struct ddp_record *r)
{
    if (r->mask)
        return r->mask;
    return r->act == DDP_IDENTITY || !ddp__act_from_y(r->act) ? r->x : r->y;
}

/* Of a frozen one, whose statistics do not depend on x. */
static ddp_value_t *backward_frozen(struct batch_norm *b, ddp_graph_t *g,
                                    const struct ddp_record *r, ddp_value_t *dy)
{
    struct ddp__call call = {.op = DDP__OP_BN_EVAL_BWD, .bn = {.eps = b->eps}};
    ddp_value_t *dz = ddp__act_backward(g, r->act, r->y, dy), *dx;

    if (r->residual)
        r->residual->grad = dz;
    if (!r->x->needs_gradient || g->rc < 0)
        return NULL;
    dx = ddp__value_like(g, r->x->shape);
    ddp__emit(g, &call,
              DDP__VALUES([DDP__BN_EVAL_BWD_DY] = dz,
                          [DDP__BN_EVAL_BWD_W] = ddp_graph_param(g, &b->layer),
                          [DDP__BN_EVAL_BWD_DX] = dx));
    return dx;
}

/* With the statistics of a whole step: dx needs sums over all of it. */
static void backward_sync(ddp_graph_t *g, const struct ddp_record *r,
                          struct ddp__call call, ddp_value_t *dy,
                          ddp_value_t *dx, ddp_value_t *dr)
{
    ddp_value_t *w = ddp_graph_param(g, r->layer);
    ddp_value_t *slope = slope_of(r);
    struct ddp__sums sum = ddp__value_sums(g, 2 * r->x->shape.c);

    call.op = DDP__OP_BN_SUM_BWD;
    ddp__emit(
        g, &call,
        DDP__VALUES([DDP__BN_SUM_BWD_X] = r->x, [DDP__BN_SUM_BWD_SLOPE] = slope,
                    [DDP__BN_SUM_BWD_DY] = dy, [DDP__BN_SUM_BWD_W] = w,
                    [DDP__BN_SUM_BWD_STAT] = r->saved,
                    [DDP__BN_SUM_BWD_G] = ddp_graph_param_gradient(g, r->layer),
                    [DDP__BN_SUM_BWD_DSUM] = sum.lane,
                    [DDP__BN_SUM_BWD_DR] = dr));
    call.op = DDP__OP_BN_SYNC_BWD;
    ddp__emit(g, &call,
              DDP__VALUES(
                  [DDP__BN_SYNC_BWD_X] = r->x, [DDP__BN_SYNC_BWD_SLOPE] = slope,
                  [DDP__BN_SYNC_BWD_DY] = dy, [DDP__BN_SYNC_BWD_W] = w,
                  [DDP__BN_SYNC_BWD_STAT] = r->saved,
                  [DDP__BN_SYNC_BWD_DSUM] = sum.step,
                  [DDP__BN_SYNC_BWD_DX] = dx, [DDP__BN_SYNC_BWD_DR] = dr));
}

/* The same, where dy has to be multiplied by a gate. */
static ddp_value_t *backward_gated(ddp_graph_t *g, const struct ddp_record *r,
                                   struct ddp__call call, ddp_value_t *dy)
{
    struct ddp__gate gate = g->gate;
    ddp_value_t *w = ddp_graph_param(g, r->layer);
    ddp_value_t *dw = ddp_graph_param_gradient(g, r->layer);
    ddp_value_t *dx = ddp__value_like(g, r->x->shape);

    g->gate.dm = NULL;
    call.op = DDP__OP_BN_GATED_BWD;
    ddp__emit(
        g, &call,
        DDP__VALUES([DDP__BN_GATED_BWD_X] = r->x, [DDP__BN_GATED_BWD_DY] = dy,
                    [DDP__BN_GATED_BWD_S] = gate.s,
                    [DDP__BN_GATED_BWD_DM] = gate.dm, [DDP__BN_GATED_BWD_W] = w,
                    [DDP__BN_GATED_BWD_STAT] = r->saved,
                    [DDP__BN_GATED_BWD_G] = dw, [DDP__BN_GATED_BWD_DX] = dx));
    return r->x->needs_gradient ? dx : NULL;
}

/* One operation computes the gradients of x, of the parameters and of the
 * residual, and passes the statistics on to the running ones. */
static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    struct batch_norm *b = (struct batch_norm *)l;
    struct ddp__call call = {.op = DDP__OP_BN_BWD,
                             .bn = {b->eps, r->act, r->residual != NULL,
                                    r->mask != NULL,
                                    g->spec.on_gpus && !g->spec.sync_bn}};
    ddp_value_t *w, *dw, *dx, *dr = NULL;

    if (!ddp__graph_trains(g, l))
        return backward_frozen(b, g, r, dy);
    if (g->gate.dm)
        return backward_gated(g, r, call, dy);
    dx = ddp__value_like(g, r->x->shape);
    if (r->residual)
        dr = r->residual->grad = ddp__value_like(g, r->x->shape);
    if (g->spec.sync_bn) {
        backward_sync(g, r, call, dy, dx, dr);
        return r->x->needs_gradient ? dx : NULL;
    }
    w = ddp_graph_param(g, l);
    dw = ddp_graph_param_gradient(g, l);
    ddp__emit(
        g, &call,
        DDP__VALUES([DDP__BN_BWD_X] = r->x, [DDP__BN_BWD_SLOPE] = slope_of(r),
                    [DDP__BN_BWD_DY] = dy, [DDP__BN_BWD_W] = w,
                    [DDP__BN_BWD_STAT] = r->saved, [DDP__BN_BWD_G] = dw,
                    [DDP__BN_BWD_DX] = dx, [DDP__BN_BWD_DR] = dr));
    return r->x->needs_gradient ? dx : NULL;
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    const struct batch_norm *b = (const struct batch_norm *)l;

    o[0] = (struct ddp_option){"eps", b->eps, NULL};
    o[1] = (struct ddp_option){"momentum", b->momentum, NULL};
    return 2;
}

static const struct ddp_layer_ops ops = {
    .kind = "batch_norm",
    .shape = shape,
    .params = params,
    .forward = forward,
    .backward = backward,
    .options = options,
    .fuses = DDP_FUSE_RESIDUAL | DDP_FUSE_ACT(DDP_RELU) |
             DDP_FUSE_ACT(DDP_RELU6) | DDP_FUSE_ACT(DDP_SILU) |
             DDP_FUSE_ACT(DDP_HARDSWISH),
};

bool ddp__norm_gates(const ddp_graph_t *g, const struct ddp_record *r)
{
    return g->spec.gates && !g->spec.sync_bn && r->layer->ops == &ops &&
           ddp__graph_trains(g, r->layer) && !r->residual && !r->mask &&
           slope_of(r) == r->x;
}

static const struct ddp_batch_norm_options defaults = {DDP__NORM_DEFAULTS};

void ddp_batch_norm_options_init_sized(struct ddp_batch_norm_options *o,
                                       size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* eps above 0, since the variance of equal values is 0. */
ddp_layer_t *ddp_batch_norm_new(int channels,
                                const struct ddp_batch_norm_options *given)
{
    struct ddp_batch_norm_options o = defaults;
    struct batch_norm *b;

    if (ddp__options_copy(&o, sizeof(o), given, "ddp_batch_norm_options") < 0)
        return NULL;
    if (channels < 1 || !(o.eps > 0) || !(o.momentum >= 0 && o.momentum <= 1)) {
        ddp__fail(DDP_EINVAL,
                  "batch_norm: %d channels, eps %g, momentum %g, expected at "
                  "least 1, above 0, and 0 to 1",
                  channels, (double)o.eps, (double)o.momentum);
        return NULL;
    }
    if (!(b = (struct batch_norm *)ddp_layer_new(sizeof(*b), &ops)))
        return NULL;
    b->channels = channels;
    b->eps = o.eps;
    b->momentum = o.momentum;
    b->zero_init = o.zero_init;
    return &b->layer;
}
