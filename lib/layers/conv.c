/* conv.c - two-dimensional convolution
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "graph/layer.h"
#include "graph/node.h"
#include "layers/defaults.h"

struct conv {
    ddp_layer_t layer;
    int in, out;
    struct ddp__conv c;
    struct ddp_weight_init init;
    bool identity;
};

static int extent(int size, int before, int after, int kernel, int dilation,
                  int stride)
{
    int room = size + before + after - dilation * (kernel - 1) - 1;

    return room < 0 ? 0 : room / stride + 1;
}

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    const struct conv *c = (const struct conv *)l;

    if (x.c != c->in)
        return ddp__fail(DDP_ESHAPE, "conv: input has %d channels, expected %d",
                         x.c, c->in);
    y->h = extent(x.h, c->c.top, c->c.bottom, c->c.kh, c->c.dh, c->c.sh);
    y->w = extent(x.w, c->c.left, c->c.right, c->c.kw, c->c.dw, c->c.sw);
    y->c = c->out;
    return 0;
}

static int params(const ddp_layer_t *l, struct ddp_param p[DDP_MAX_PARAMS])
{
    const struct conv *c = (const struct conv *)l;
    int per_group = c->in / c->c.groups;
    float fan_in = (float)(per_group * c->c.kh * c->c.kw);
    float fan_out = (float)(c->out * c->c.kh * c->c.kw);

    p[0] = (struct ddp_param){"weight",
                              DDP_WEIGHT,
                              4,
                              {c->out, per_group, c->c.kh, c->c.kw},
                              .std = c->init.std,
                              .bound = c->init.bound,
                              .identity = c->identity};
    if (c->init.std == 0 && c->init.bound == 0)
        p[0].std = sqrtf(2 / fan_out);
    p[1] =
        (struct ddp_param){"bias",
                           DDP_BIAS,
                           1,
                           {c->out},
                           .bound = c->init.zero_bias ? 0 : 1 / sqrtf(fan_in)};
    return c->c.bias ? 2 : 1;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp__call call = {.op = DDP__OP_CONV_FWD,
                             .conv = ((struct conv *)l)->c};
    ddp_value_t *w = ddp_graph_param(g, l), *y;
    struct ddp_shape s = {0, 0, 0};

    if (shape(l, x->shape, &s) < 0)
        return NULL;
    call.conv.act = ddp__take_act(g);
    y = ddp__value_like(g, s);
    ddp__emit(g, &call,
              DDP__VALUES([DDP__CONV_FWD_X] = x, [DDP__CONV_FWD_W] = w,
                          [DDP__CONV_FWD_Y] = y));
    return ddp_graph_record(
        g,
        &(struct ddp_record){.layer = l, .x = x, .y = y, .act = call.conv.act});
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    struct ddp__call call = {.conv = ((struct conv *)l)->c};

    return ddp__weighted_backward(g, r, dy, call, DDP__OP_CONV_BWD_W,
                                  DDP__OP_CONV_BWD_X);
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    const struct ddp__conv *c = &((const struct conv *)l)->c;
    const struct ddp_option all[] = {
        {"kernel_h", c->kh, NULL},       {"kernel_w", c->kw, NULL},
        {"stride_h", c->sh, NULL},       {"stride_w", c->sw, NULL},
        {"dilation_h", c->dh, NULL},     {"dilation_w", c->dw, NULL},
        {"pad_top", c->top, NULL},       {"pad_left", c->left, NULL},
        {"pad_bottom", c->bottom, NULL}, {"pad_right", c->right, NULL},
        {"groups", c->groups, NULL},
    };

    _Static_assert(sizeof(all) / sizeof(*all) <= DDP_MAX_OPTIONS, "room");
    memcpy(o, all, sizeof(all));
    return sizeof(all) / sizeof(*all);
}

static double flops(const ddp_layer_t *l, struct ddp_shape x)
{
    const struct conv *c = (const struct conv *)l;
    struct ddp_shape y = {0, 0, 0};

    if (shape(l, x, &y) < 0)
        return 0;
    return 2.0 * y.h * y.w * y.c * c->c.kh * c->c.kw * (c->in / c->c.groups);
}

static const struct ddp_layer_ops ops = {
    .kind = "conv",
    .shape = shape,
    .params = params,
    .forward = forward,
    .backward = backward,
    .flops = flops,
    .options = options,
    .fuses = DDP_FUSE_ACT(DDP_RELU) | DDP_FUSE_ACT(DDP_RELU6) |
             DDP_FUSE_ACT(DDP_SIGMOID) | DDP_FUSE_ACT(DDP_TANH),
};

static const struct ddp_conv_options defaults = {DDP__CONV_DEFAULTS};

void ddp_conv_options_init_sized(struct ddp_conv_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

static struct ddp__conv geometry(int kernel, const struct ddp_conv_options *o)
{
    int pad_w = ddp__or_same(o->pad_w, o->pad);
    struct ddp__conv c = {
        .kh = kernel,
        .kw = ddp__or_same(o->kernel_w, kernel),
        .sh = o->stride,
        .sw = ddp__or_same(o->stride_w, o->stride),
        .dh = o->dilation,
        .dw = ddp__or_same(o->dilation_w, o->dilation),
        .top = ddp__or_same(o->pads[0], o->pad),
        .left = ddp__or_same(o->pads[1], pad_w),
        .bottom = ddp__or_same(o->pads[2], o->pad),
        .right = ddp__or_same(o->pads[3], pad_w),
        .groups = o->groups,
        .bias = !o->no_bias,
    };

    return c;
}

/* Sizes first: the check of groups divides by their number. */
ddp_layer_t *ddp_conv_new(int in, int out, int kernel,
                          const struct ddp_conv_options *given)
{
    struct ddp_conv_options o = defaults;
    struct ddp__conv g;
    struct conv *c;

    if (ddp__options_copy(&o, sizeof(o), given, "ddp_conv_options") < 0)
        return NULL;
    g = geometry(kernel, &o);
    if (in < 1 || out < 1 || g.kh < 1 || g.kw < 1 || g.sh < 1 || g.sw < 1 ||
        g.dh < 1 || g.dw < 1 || g.groups < 1 || g.top < 0 || g.left < 0 ||
        g.bottom < 0 || g.right < 0) {
        ddp__fail(DDP_EINVAL,
                  "conv: %d to %d channels, kernel %d x %d, stride %d x %d, "
                  "dilation %d x %d, %d groups, pads %d %d %d %d, expected "
                  "positive sizes, and pads of 0 or more",
                  in, out, g.kh, g.kw, g.sh, g.sw, g.dh, g.dw, g.groups, g.top,
                  g.left, g.bottom, g.right);
        return NULL;
    }
    if (in % g.groups || out % g.groups) {
        ddp__fail(DDP_EINVAL,
                  "conv: %d groups do not divide %d and %d "
                  "channels",
                  g.groups, in, out);
        return NULL;
    }
    if (o.identity && o.groups > 1) {
        ddp__fail(DDP_EINVAL, "conv: identity with %d groups, expected 1 group",
                  o.groups);
        return NULL;
    }
    if (!ddp__init_valid(&o.init, "conv"))
        return NULL;
    if (!(c = (struct conv *)ddp_layer_new(sizeof(*c), &ops)))
        return NULL;
    c->in = in;
    c->out = out;
    c->c = g;
    c->init = o.init;
    c->identity = o.identity;
    return &c->layer;
}
