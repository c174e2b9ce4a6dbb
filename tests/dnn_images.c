/* dnn_images.c - oneDNN's primitives for operations on images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "dnn_images.h"

/* ---- pools -------------------------------------------------------------- */

/* The descriptors of a pool. */
struct images {
    md_t x, y;
};

struct window {
    dnnl_alg_kind_t alg;
    dnnl_dims_t size, stride, before, after, dilation;
};

static struct window window_of(const struct check *k)
{
    const struct ddp__pool *p = &k->row.call.pool;
    struct ddp_shape x = k->row.x, y = k->row.y;
    bool max = k->row.family == CHECK_MAX_POOL;

    return (struct window){
        .alg = max            ? dnnl_pooling_max
               : p->count_pad ? dnnl_pooling_avg_include_padding
                              : dnnl_pooling_avg_exclude_padding,
        .size = {p->kh, p->kw},
        .stride = {p->sh, p->sw},
        .before = {p->top, p->left},
        .after = {(y.h - 1) * p->sh + p->kh - x.h - p->top,
                  (y.w - 1) * p->sw + p->kw - x.w - p->left}};
}

static void pool_pd(struct dnn_step *s, const struct window *w,
                    const struct images *m, const struct dnn_step *forward)
{
#if V3
    if (forward)
        dnn_must(dnnl_pooling_backward_primitive_desc_create(
                     &s->pd, dnn_engine, w->alg, m->x, m->y, w->stride, w->size,
                     w->dilation, w->before, w->after, forward->pd, NULL),
                 "pool, backward");
    else
        dnn_must(dnnl_pooling_forward_primitive_desc_create(
                     &s->pd, dnn_engine, dnnl_forward_training, w->alg, m->x,
                     m->y, w->stride, w->size, w->dilation, w->before, w->after,
                     NULL),
                 "pool");
#else
    dnnl_pooling_desc_t d;

    if (forward)
        dnn_must(dnnl_pooling_backward_desc_init(&d, w->alg, &m->x, &m->y,
                                                 w->stride, w->size, w->before,
                                                 w->after),
                 "pool, backward");
    else
        dnn_must(dnnl_pooling_forward_desc_init(&d, dnnl_forward_training,
                                                w->alg, &m->x, &m->y, w->stride,
                                                w->size, w->before, w->after),
                 "pool");
    dnn_must(dnnl_primitive_desc_create(&s->pd, &d, NULL, dnn_engine,
                                        forward ? forward->pd : NULL),
             "pool");
#endif
    dnn_step_begin(s);
}

void dnn_pool_new(struct dnn_steps *p, struct check *k, bool backward)
{
    struct window w = window_of(k);
    struct images m = {dnn_image(&k->tensor[ROLE_X], k->row.cap),
                       dnn_image(&k->tensor[ROLE_Y], k->row.cap)};
    struct dnn_step forward = {.args = 0};
    void *x = dnn_own(p, dnn_size(REF(m.x))),
         *y = dnn_own(p, dnn_size(REF(m.y))), *ws;
    bool max = k->row.family == CHECK_MAX_POOL;

    pool_pd(&forward, &w, &m, NULL);
    ws = max ? dnn_own(p, dnn_size(dnn_workspace(&forward))) : NULL;
    dnn_arg(&forward, DNNL_ARG_SRC, REF(m.x), k->tensor[ROLE_X].data);
    dnn_arg(&forward, DNNL_ARG_DST, REF(m.y), y);
    if (max)
        dnn_arg(&forward, DNNL_ARG_WORKSPACE, dnn_workspace(&forward), ws);
    p->steps = 1;
    p->result = backward ? x : y;
    if (backward) {
        struct dnn_step *s = &p->step[0];

        dnn_step_run(&forward);
        pool_pd(s, &w, &m, &forward);
        dnn_arg(s, DNNL_ARG_DIFF_DST, REF(m.y), k->tensor[ROLE_DY].data);
        dnn_arg(s, DNNL_ARG_DIFF_SRC, REF(m.x), x);
        if (max)
            dnn_arg(s, DNNL_ARG_WORKSPACE, dnn_workspace(&forward), ws);
        dnn_step_end(&forward);
    } else {
        p->step[0] = forward;
    }
    ddp__md_free(&m.x);
    ddp__md_free(&m.y);
}

/* ---- activations -------------------------------------------------------- */

/* Their slopes follow from x, or as ours from y. */
static const struct function {
    dnnl_alg_kind_t alg;
    float alpha, beta;
    bool from_y;
} functions[DDP_ACT_COUNT] = {
    [DDP_RELU] = {dnnl_eltwise_relu_use_dst_for_bwd, 0, 0, true},
    [DDP_RELU6] = {dnnl_eltwise_clip_v2_use_dst_for_bwd, 0, 6, true},
    [DDP_SILU] = {dnnl_eltwise_swish, 1, 0, false},
    [DDP_SIGMOID] = {dnnl_eltwise_logistic_use_dst_for_bwd, 0, 0, true},
    [DDP_TANH] = {dnnl_eltwise_tanh_use_dst_for_bwd, 0, 0, true},
    [DDP_GELU] = {dnnl_eltwise_gelu_erf, 0, 0, false},
#if V3
    [DDP_HARDSWISH] = {dnnl_eltwise_hardswish, 1.0f / 6, 0.5f, false},
#else
    [DDP_HARDSWISH] = {dnnl_eltwise_hardswish, 0, 0, false},
#endif
};

static void act_pd(struct dnn_step *s, const struct function *f, const md_t *md,
                   const struct dnn_step *forward)
{
#if V3
    if (forward)
        dnn_must(dnnl_eltwise_backward_primitive_desc_create(
                     &s->pd, dnn_engine, f->alg, *md, *md, *md, f->alpha,
                     f->beta, forward->pd, NULL),
                 "activation, backward");
    else
        dnn_must(dnnl_eltwise_forward_primitive_desc_create(
                     &s->pd, dnn_engine, dnnl_forward_training, f->alg, *md,
                     *md, f->alpha, f->beta, NULL),
                 "activation");
#else
    dnnl_eltwise_desc_t d;

    if (forward)
        dnn_must(dnnl_eltwise_backward_desc_init(&d, f->alg, md, md, f->alpha,
                                                 f->beta),
                 "activation, backward");
    else
        dnn_must(dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training,
                                                f->alg, md, f->alpha, f->beta),
                 "activation");
    dnn_must(dnnl_primitive_desc_create(&s->pd, &d, NULL, dnn_engine,
                                        forward ? forward->pd : NULL),
             "activation");
#endif
    dnn_step_begin(s);
}

/* y = act(x); backward: dx = dy act'(x), where x and y are of a forward run. */
static void add_act(struct dnn_steps *p, enum ddp_act act, const md_t *md,
                    bool backward, void *x, void *y, void *dy, void *dx)
{
    const struct function *f = &functions[act];
    struct dnn_step *s = &p->step[p->steps++], forward = {.args = 0};

    act_pd(backward ? &forward : s, f, md, NULL);
    if (!backward) {
        dnn_arg(s, DNNL_ARG_SRC, REF(*md), x);
        dnn_arg(s, DNNL_ARG_DST, REF(*md), y);
        return;
    }
    act_pd(s, f, md, &forward);
    dnn_arg(s, f->from_y ? DNNL_ARG_DST : DNNL_ARG_SRC, REF(*md),
            f->from_y ? y : x);
    dnn_arg(s, DNNL_ARG_DIFF_DST, REF(*md), dy);
    dnn_arg(s, DNNL_ARG_DIFF_SRC, REF(*md), dx);
    dnn_step_end(&forward);
}

void dnn_act_new(struct dnn_steps *p, struct check *k, bool backward)
{
    md_t md = dnn_image(&k->tensor[ROLE_X], k->row.cap);

    p->result = dnn_own(p, dnn_size(REF(md)));
    add_act(p, k->row.call.act, &md, backward, k->tensor[ROLE_X].data,
            backward ? k->tensor[ROLE_Y].data : p->result,
            k->tensor[ROLE_DY].data, p->result);
    ddp__md_free(&md);
}

/* ---- batch norm --------------------------------------------------------- */

/* What a norm keeps for its backward pass. */
struct norm {
    md_t x, channels;
    void *mean, *var, *ws; /* ws NULL: relu is a step of its own */
};

static void norm_pd(struct dnn_step *s, const struct norm *m, bool relu,
                    const struct dnn_step *forward)
{
    unsigned flags = dnnl_use_scale | dnnl_use_shift |
                     (relu ? (unsigned)dnnl_fuse_norm_relu : 0);

#if V3
    if (forward)
        dnn_must(dnnl_batch_normalization_backward_primitive_desc_create(
                     &s->pd, dnn_engine, dnnl_backward, m->x, m->x, m->x, 1e-5f,
                     flags, forward->pd, NULL),
                 "norm, backward");
    else
        dnn_must(dnnl_batch_normalization_forward_primitive_desc_create(
                     &s->pd, dnn_engine, dnnl_forward_training, m->x, m->x,
                     1e-5f, flags, NULL),
                 "norm");
#else
    dnnl_batch_normalization_desc_t d;

    if (forward)
        dnn_must(dnnl_batch_normalization_backward_desc_init(
                     &d, dnnl_backward, &m->x, &m->x, 1e-5f, flags),
                 "norm, backward");
    else
        dnn_must(dnnl_batch_normalization_forward_desc_init(
                     &d, dnnl_forward_training, &m->x, 1e-5f, flags),
                 "norm");
    dnn_must(dnnl_primitive_desc_create(&s->pd, &d, NULL, dnn_engine,
                                        forward ? forward->pd : NULL),
             "norm");
#endif
    dnn_step_begin(s);
}

/* Scale and shift, or their gradients. */
static void add_channels(struct dnn_step *s, const struct norm *m,
                         bool gradient, float *w, int c)
{
    dnn_arg(s, gradient ? DNNL_ARG_DIFF_SCALE : DNNL_ARG_SCALE,
            REF(m->channels), w);
    dnn_arg(s, gradient ? DNNL_ARG_DIFF_SHIFT : DNNL_ARG_SHIFT,
            REF(m->channels), w + c);
}

static void add_statistics(struct dnn_step *s, const struct norm *m)
{
    dnn_arg(s, DNNL_ARG_MEAN, REF(m->channels), m->mean);
    dnn_arg(s, DNNL_ARG_VARIANCE, REF(m->channels), m->var);
    if (m->ws)
        dnn_arg(s, DNNL_ARG_WORKSPACE,
                dnnl_primitive_desc_query_md(s->pd, dnnl_query_workspace_md, 0),
                m->ws);
}

/* y = act(x + r) */
static void add_sum(struct dnn_steps *p, enum ddp_act act, const md_t *md,
                    void *x, void *r, void *y)
{
    struct dnn_step *s = &p->step[p->steps++];
    dnnl_primitive_attr_t attr;

    dnn_must(ddp__dnn_attr(&attr, false, act), "sum's activation");
#if V3
    dnn_must(dnnl_binary_primitive_desc_create(
                 &s->pd, dnn_engine, dnnl_binary_add, *md, *md, *md, attr),
             "sum");
#else
    dnnl_binary_desc_t d;

    dnn_must(dnnl_binary_desc_init(&d, dnnl_binary_add, md, md, md), "sum");
    dnn_must(dnnl_primitive_desc_create(&s->pd, &d, attr, dnn_engine, NULL),
             "sum");
#endif
    dnnl_primitive_attr_destroy(attr);
    dnn_step_begin(s);
    dnn_arg(s, DNNL_ARG_SRC_0, REF(*md), x);
    dnn_arg(s, DNNL_ARG_SRC_1, REF(*md), r);
    dnn_arg(s, DNNL_ARG_DST, REF(*md), y);
}

static struct dnn_step norm_forward(struct dnn_steps *p, struct check *k,
                                    struct norm *m, bool relu, void *y)
{
    struct dnn_step s = {.args = 0};

    norm_pd(&s, m, relu, NULL);
    m->ws = relu ? dnn_own(p, dnn_size(dnn_workspace(&s))) : NULL;
    dnn_arg(&s, DNNL_ARG_SRC, REF(m->x), k->tensor[ROLE_X].data);
    dnn_arg(&s, DNNL_ARG_DST, REF(m->x), y);
    add_channels(&s, m, false, k->tensor[ROLE_W].data, k->row.x.c);
    add_statistics(&s, m);
    return s;
}

/* The gradient of the norm's result is dz. */
static void norm_backward(struct dnn_steps *p, struct check *k, struct norm *m,
                          const struct dnn_step *forward, void *dz)
{
    struct dnn_step *s = &p->step[p->steps++];
    float *g = dnn_own(p, 2 * (size_t)k->row.x.c * sizeof(*g));

    norm_pd(s, m, m->ws != NULL, forward);
    dnn_arg(s, DNNL_ARG_SRC, REF(m->x), k->tensor[ROLE_X].data);
    dnn_arg(s, DNNL_ARG_DIFF_DST, REF(m->x), dz);
    dnn_arg(s, DNNL_ARG_DIFF_SRC, REF(m->x), p->result);
    add_channels(s, m, false, k->tensor[ROLE_W].data, k->row.x.c);
    add_channels(s, m, true, g, k->row.x.c);
    add_statistics(s, m);
}

/* relu alone is a part of oneDNN's norm; other activations, and a sum before
 * them, are a step of their own. */
void dnn_norm_new(struct dnn_steps *p, struct check *k, bool backward)
{
    enum ddp_act act = k->row.call.bn.act;
    bool sum = k->row.call.bn.residual, relu = act == DDP_RELU && !sum;
    bool alone = relu || (act == DDP_IDENTITY && !sum);
    struct norm m = {.x = dnn_image(&k->tensor[ROLE_X], k->row.cap),
                     .channels = dnn_vector(k->row.x.c)};
    size_t size = dnn_size(REF(m.x)), c = (size_t)k->row.x.c * sizeof(float);
    void *between = alone ? NULL : dnn_own(p, size);
    struct dnn_step forward;

    m.mean = dnn_own(p, c);
    m.var = dnn_own(p, c);
    p->result = dnn_own(p, size);
    forward = norm_forward(p, k, &m, relu, alone ? p->result : between);
    if (backward) {
        void *dy = k->tensor[ROLE_DY].data;
        void *dz = alone || act == DDP_IDENTITY ? dy : dnn_own(p, size);

        dnn_step_run(&forward);
        if (dz != dy)
            add_act(p, act, &m.x, true, between, k->tensor[ROLE_Y].data, dy,
                    dz);
        norm_backward(p, k, &m, &forward, dz);
        dnn_step_end(&forward);
    } else {
        p->step[p->steps++] = forward;
        if (sum)
            add_sum(p, act, &m.x, between, k->tensor[ROLE_R].data, p->result);
        else if (!alone)
            add_act(p, act, &m.x, false, between, p->result, NULL, NULL);
    }
    ddp__md_free(&m.x);
    ddp__md_free(&m.channels);
}
