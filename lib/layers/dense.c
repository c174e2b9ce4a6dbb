/* dense.c - y = W x + b on vectors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "base/error.h"
#include "base/options.h"
#include "graph/layer.h"
#include "graph/node.h"
#include "layers/defaults.h"

struct dense {
    ddp_layer_t layer;
    int in, out, pixels;
    bool bias;
    struct ddp_weight_init init;
};

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    const struct dense *d = (const struct dense *)l;

    if (x.h != 1 || x.w != 1 || x.c != d->in)
        return ddp__fail(DDP_ESHAPE,
                         "dense: input is (%d, %d, %d), expected (1, 1, %d)%s",
                         x.h, x.w, x.c, d->in,
                         x.h * x.w * x.c == d->in ? ": flatten first" : "");
    *y = (struct ddp_shape){1, 1, d->out};
    return 0;
}

static int params(const ddp_layer_t *l, struct ddp_param p[DDP_MAX_PARAMS])
{
    const struct dense *d = (const struct dense *)l;
    float bound = 1 / sqrtf((float)d->in);

    p[0] = (struct ddp_param){
        "weight",           DDP_WEIGHT,         2,
        {d->out, d->in},    .std = d->init.std, .bound = d->init.bound,
        .pixels = d->pixels};
    if (d->init.std == 0 && d->init.bound == 0)
        p[0].bound = bound;
    p[1] = (struct ddp_param){
        "bias", DDP_BIAS, 1, {d->out}, .bound = d->init.zero_bias ? 0 : bound};
    return d->bias ? 2 : 1;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct dense *d = (struct dense *)l;
    struct ddp__call call = {.op = DDP__OP_DENSE_FWD,
                             .dense = {d->bias, ddp__take_act(g)}};
    ddp_value_t *w = ddp_graph_param(g, l);
    ddp_value_t *y = ddp__value_like(g, (struct ddp_shape){1, 1, d->out});

    ddp__emit(g, &call,
              DDP__VALUES([DDP__DENSE_FWD_X] = x, [DDP__DENSE_FWD_W] = w,
                          [DDP__DENSE_FWD_Y] = y));
    return ddp_graph_record(
        g, &(struct ddp_record){
               .layer = l, .x = x, .y = y, .act = call.dense.act});
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    struct ddp__call call = {.dense = {((struct dense *)l)->bias, r->act}};

    return ddp__weighted_backward(g, r, dy, call, DDP__OP_DENSE_BWD_W,
                                  DDP__OP_DENSE_BWD_X);
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    o[0] =
        (struct ddp_option){"pixels", ((const struct dense *)l)->pixels, NULL};
    return 1;
}

static double flops(const ddp_layer_t *l, struct ddp_shape x)
{
    const struct dense *d = (const struct dense *)l;

    (void)x;
    return 2.0 * d->in * d->out;
}

static const struct ddp_layer_ops ops = {
    .kind = "dense",
    .shape = shape,
    .params = params,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .options = options,
    .fuses = DDP_FUSE_ACT(DDP_RELU) | DDP_FUSE_ACT(DDP_RELU6) |
             DDP_FUSE_ACT(DDP_SIGMOID) | DDP_FUSE_ACT(DDP_TANH),
};

static const struct ddp_dense_options defaults = {DDP__DENSE_DEFAULTS};

void ddp_dense_options_init_sized(struct ddp_dense_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* Everything is checked before the layer is allocated, so that a failure has
 * nothing to free. */
ddp_layer_t *ddp_dense_new(int in, int out,
                           const struct ddp_dense_options *given)
{
    struct ddp_dense_options o = defaults;
    struct dense *d;

    if (ddp__options_copy(&o, sizeof(o), given, "ddp_dense_options") < 0)
        return NULL;
    if (in < 1 || out < 1) {
        ddp__fail(DDP_EINVAL,
                  "dense: %d to %d features, expected positive numbers", in,
                  out);
        return NULL;
    }
    if (o.pixels < 1 || in % o.pixels) {
        ddp__fail(DDP_EINVAL,
                  "dense: %d features are not a multiple of %d pixels", in,
                  o.pixels);
        return NULL;
    }
    if (!ddp__init_valid(&o.init, "dense"))
        return NULL;
    if (!(d = (struct dense *)ddp_layer_new(sizeof(*d), &ops)))
        return NULL;
    d->in = in;
    d->out = out;
    d->pixels = o.pixels;
    d->bias = !o.no_bias;
    d->init = o.init;
    return &d->layer;
}
