/* pool.c - max and mean over windows, adaptive and global mean
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "graph/node.h"
#include "layers/defaults.h"

struct pool {
    ddp_layer_t layer;
    struct ddp__pool p;
    bool max, ceil;
    int out_h, out_w; /* adaptive: wanted */
    int pad_h, pad_w;
};

/* Windows along one side; with ceil the last may hang over, but must begin
 * inside the image or its left padding (as PyTorch). */
static int extent(int size, int pad, int kernel, int stride, bool ceil)
{
    int room = size + 2 * pad - kernel, n;

    if (room < 0)
        return 0;
    n = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (n - 1) * stride >= size + pad)
        n--;
    return n;
}

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    const struct pool *p = (const struct pool *)l;

    y->c = x.c;
    if (p->p.adaptive) {
        y->h = p->out_h;
        y->w = p->out_w;
        return 0;
    }
    y->h = extent(x.h, p->pad_h, p->p.kh, p->p.sh, p->ceil);
    y->w = extent(x.w, p->pad_w, p->p.kw, p->p.sw, p->ceil);
    return 0;
}

/* A max pool keeps the place of each maximum in its window for backward: in
 * a byte if the window has at most 256 places. */
static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct pool *p = (struct pool *)l;
    struct ddp__call call = {.pool = p->p};
    ddp_value_t *y, *index = NULL;
    struct ddp_shape s;

    if (shape(l, x->shape, &s) < 0)
        return NULL;
    y = ddp__value_like(g, s);
    if (p->max) {
        index =
            ddp_graph_value(g, s, p->p.kh * p->p.kw <= 256 ? DDP_U8 : DDP_I32);
        call.op = DDP__OP_MAX_POOL_FWD;
        ddp__emit(
            g, &call,
            DDP__VALUES([DDP__MAX_POOL_FWD_X] = x, [DDP__MAX_POOL_FWD_Y] = y,
                        [DDP__MAX_POOL_FWD_INDEX] = index));
    } else {
        call.op = DDP__OP_MEAN_POOL_FWD;
        ddp__emit(
            g, &call,
            DDP__VALUES([DDP__MEAN_POOL_FWD_X] = x, [DDP__MEAN_POOL_FWD_Y] =
                                                        y));
    }
    return ddp_graph_record(
        g, &(struct ddp_record){.layer = l, .x = x, .y = y, .saved = index});
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    struct pool *p = (struct pool *)l;
    struct ddp__call call = {.pool = p->p};
    ddp_value_t *dx;

    if (!r->x->needs_gradient)
        return NULL;
    dx = ddp__value_like(g, r->x->shape);
    if (p->max) {
        call.op = DDP__OP_MAX_POOL_BWD;
        ddp__emit(g, &call,
                  DDP__VALUES([DDP__MAX_POOL_BWD_DY] = dy,
                              [DDP__MAX_POOL_BWD_INDEX] = r->saved,
                              [DDP__MAX_POOL_BWD_DX] = dx));
    } else {
        call.op = DDP__OP_MEAN_POOL_BWD;
        ddp__emit(
            g, &call,
            DDP__VALUES([DDP__MEAN_POOL_BWD_DY] = dy, [DDP__MEAN_POOL_BWD_DX] =
                                                          dx));
    }
    return dx;
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    const struct pool *p = (const struct pool *)l;
    const struct ddp_option windows[] = {
        {"kernel_h", p->p.kh, NULL},  {"kernel_w", p->p.kw, NULL},
        {"stride_h", p->p.sh, NULL},  {"stride_w", p->p.sw, NULL},
        {"pad_h", p->pad_h, NULL},    {"pad_w", p->pad_w, NULL},
        {"ceil_mode", p->ceil, NULL}, {"exclude_pad", !p->p.count_pad, NULL},
    };

    _Static_assert(sizeof(windows) / sizeof(*windows) <= DDP_MAX_OPTIONS,
                   "room");
    if (p->p.adaptive) {
        o[0] = (struct ddp_option){"out_h", p->out_h, NULL};
        o[1] = (struct ddp_option){"out_w", p->out_w, NULL};
        return 2;
    }
    memcpy(o, windows, sizeof(windows));
    return sizeof(windows) / sizeof(*windows);
}

static const struct ddp_layer_ops max_ops = {
    .kind = "max_pool",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

static const struct ddp_layer_ops mean_ops = {
    .kind = "mean_pool",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

static struct pool *pool_new(bool max)
{
    struct pool *p =
        (struct pool *)ddp_layer_new(sizeof(*p), max ? &max_ops : &mean_ops);

    if (p)
        p->max = max;
    return p;
}

static const struct ddp_pool_options defaults = {DDP__POOL_DEFAULTS};

void ddp_pool_options_init_sized(struct ddp_pool_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* Defaults depend on other options: a stride on the kernel, a width on its
 * height. */
static struct ddp__pool windows(int kernel, const struct ddp_pool_options *o)
{
    int kw = ddp__or_same(o->kernel_w, kernel);
    int pad_w = ddp__or_same(o->pad_w, o->pad);
    struct ddp__pool p = {
        .kh = kernel,
        .kw = kw,
        .sh = ddp__or_same(o->stride, kernel),
        .sw = ddp__or_same(o->stride_w, ddp__or_same(o->stride, kw)),
        .top = o->pad,
        .left = pad_w,
        .bottom = o->pad,
        .right = pad_w,
        .count_pad = !o->exclude_pad,
    };

    return p;
}

static ddp_layer_t *window_pool_new(bool max, int kernel,
                                    const struct ddp_pool_options *given)
{
    struct ddp_pool_options o = defaults;
    struct ddp__pool w;
    struct pool *p;

    if (ddp__options_copy(&o, sizeof(o), given, "ddp_pool_options") < 0)
        return NULL;
    w = windows(kernel, &o);
    if (w.kh < 1 || w.kw < 1 || w.sh < 1 || w.sw < 1 || w.top < 0 ||
        w.left < 0 || 2 * w.top > w.kh || 2 * w.left > w.kw) {
        ddp__fail(DDP_EINVAL,
                  "pool: kernel %d x %d, stride %d x %d, pad %d x %d, expected "
                  "positive sizes and a pad of at most half the kernel",
                  w.kh, w.kw, w.sh, w.sw, w.top, w.left);
        return NULL;
    }
    if (!(p = pool_new(max)))
        return NULL;
    p->p = w;
    p->ceil = o.ceil_mode;
    p->pad_h = w.top;
    p->pad_w = w.left;
    return &p->layer;
}

ddp_layer_t *ddp_max_pool_new(int kernel, const struct ddp_pool_options *o)
{
    return window_pool_new(true, kernel, o);
}

ddp_layer_t *ddp_mean_pool_new(int kernel, const struct ddp_pool_options *o)
{
    return window_pool_new(false, kernel, o);
}

ddp_layer_t *ddp_adaptive_mean_pool_new(int out_h, int out_w)
{
    struct pool *p;

    if (out_h < 1 || out_w < 1) {
        ddp__fail(DDP_EINVAL,
                  "adaptive_mean_pool: %d x %d, expected positive sizes", out_h,
                  out_w);
        return NULL;
    }
    if (!(p = pool_new(false)))
        return NULL;
    p->p.adaptive = true;
    p->out_h = out_h;
    p->out_w = out_w;
    return &p->layer;
}

ddp_layer_t *ddp_global_mean_pool_new(void)
{
    return ddp_adaptive_mean_pool_new(1, 1);
}
