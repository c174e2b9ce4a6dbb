/* dnn_peer.c - oneDNN's primitives for what an operation of a row does
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * oneDNN 2.6 or 3.x.  Every failure of oneDNN ends the program: nothing here is
 * more than a benchmark needs.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/onednn_pd.h"
#include "cpu/plan.h"
#include "dnn_peer.h"
#include "tap.h"

enum { MOST_STEPS = 2, MOST_ARGS = 10, MOST_OWN = 12 };

/* A primitive and its arguments. */
struct step {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t prim;
    dnnl_exec_arg_t arg[MOST_ARGS];
    int args;
};

struct dnn_peer {
    struct step step[MOST_STEPS];
    int steps;
    /* Convolutions and dense layers are by the library's own wrapper. */
    struct ddp__dnn *dnn;
    bool keeps; /* weights are packed once */
    void *x, *w, *bias, *y, *packed, *scratch;
    enum check_role role; /* of the result */
    void *result;
    void *own[MOST_OWN]; /* owned */
    int owns;
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(dnnl_status_t st, const char *what)
{
    if (st)
        bail_out("oneDNN: %s: status %d", what, (int)st);
}

/* With one thread, where oneDNN has OpenMP. */
static void start(void)
{
    void (*omp_threads)(int) =
        (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");

    if (engine)
        return;
    if (omp_threads)
        omp_threads(1);
    must(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
    must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags),
         "stream");
}

static void *own(struct dnn_peer *p, size_t bytes)
{
    void *m = aligned_alloc(64, (bytes + 127) / 64 * 64);

    if (!m || p->owns == MOST_OWN)
        bail_out("out of memory");
    memset(m, 0, bytes);
    return p->own[p->owns++] = m;
}

/* ---- memory ------------------------------------------------------------- */

static md_t image(const struct check_tensor *t, int n)
{
    struct ddp_shape s = t->view.shape;
    dnnl_dims_t dims = {n, s.c, s.h, s.w};
    dnnl_data_type_t type = t->view.type == DDP_BF16 ? dnnl_bf16 : dnnl_f32;
    md_t md;

#if V3
    must(dnnl_memory_desc_create_with_tag(&md, 4, dims, type, dnnl_nhwc),
         "image");
#else
    must(dnnl_memory_desc_init_by_tag(&md, 4, dims, type, dnnl_nhwc), "image");
#endif
    return md;
}

static md_t vector(int len)
{
    dnnl_dims_t dims = {len};
    md_t md;

#if V3
    must(dnnl_memory_desc_create_with_tag(&md, 1, dims, dnnl_f32, dnnl_a),
         "vector");
#else
    must(dnnl_memory_desc_init_by_tag(&md, 1, dims, dnnl_f32, dnnl_a),
         "vector");
#endif
    return md;
}

static size_t size_of(cmd_t md)
{
    return dnnl_memory_desc_get_size(md);
}

static void add_arg(struct step *s, int id, cmd_t md, void *data)
{
    dnnl_memory_t m;

    must(dnnl_memory_create(&m, md, engine, data), "memory");
    s->arg[s->args++] = (dnnl_exec_arg_t){id, m};
}

static cmd_t workspace_md(const struct step *s)
{
    return dnnl_primitive_desc_query_md(s->pd, dnnl_query_workspace_md, 0);
}

/* ---- primitives --------------------------------------------------------- */

static void step_begin(struct step *s)
{
    s->args = 0;
    must(dnnl_primitive_create(&s->prim, s->pd), "primitive");
}

static void step_run(const struct step *s)
{
    must(dnnl_primitive_execute(s->prim, stream, s->args, s->arg), "run");
}

static void step_end(struct step *s)
{
    while (s->args > 0)
        dnnl_memory_destroy(s->arg[--s->args].memory);
    if (s->prim)
        dnnl_primitive_destroy(s->prim);
    if (s->pd)
        dnnl_primitive_desc_destroy(s->pd);
    memset(s, 0, sizeof(*s));
}

/* The descriptors of an operation on images: x and y are as large in all but
 * pools. */
struct images {
    md_t x, y;
};

/* ---- pools -------------------------------------------------------------- */

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

static void pool_pd(struct step *s, const struct window *w,
                    const struct images *m, const struct step *forward)
{
#if V3
    if (forward)
        must(dnnl_pooling_backward_primitive_desc_create(
                 &s->pd, engine, w->alg, m->x, m->y, w->stride, w->size,
                 w->dilation, w->before, w->after, forward->pd, NULL),
             "pool, backward");
    else
        must(dnnl_pooling_forward_primitive_desc_create(
                 &s->pd, engine, dnnl_forward_training, w->alg, m->x, m->y,
                 w->stride, w->size, w->dilation, w->before, w->after, NULL),
             "pool");
#else
    dnnl_pooling_desc_t d;

    if (forward)
        must(dnnl_pooling_backward_desc_init(&d, w->alg, &m->x, &m->y,
                                             w->stride, w->size, w->before,
                                             w->after),
             "pool, backward");
    else
        must(dnnl_pooling_forward_desc_init(&d, dnnl_forward_training, w->alg,
                                            &m->x, &m->y, w->stride, w->size,
                                            w->before, w->after),
             "pool");
    must(dnnl_primitive_desc_create(&s->pd, &d, NULL, engine,
                                    forward ? forward->pd : NULL),
         "pool");
#endif
    step_begin(s);
}

static void new_pool(struct dnn_peer *p, struct check *k, bool backward)
{
    struct window w = window_of(k);
    struct images m = {image(&k->tensor[ROLE_X], k->row.cap),
                       image(&k->tensor[ROLE_Y], k->row.cap)};
    struct step forward = {.args = 0};
    void *x = own(p, size_of(REF(m.x))), *y = own(p, size_of(REF(m.y))), *ws;
    bool max = k->row.family == CHECK_MAX_POOL;

    pool_pd(&forward, &w, &m, NULL);
    ws = max ? own(p, size_of(workspace_md(&forward))) : NULL;
    add_arg(&forward, DNNL_ARG_SRC, REF(m.x), k->tensor[ROLE_X].data);
    add_arg(&forward, DNNL_ARG_DST, REF(m.y), y);
    if (max)
        add_arg(&forward, DNNL_ARG_WORKSPACE, workspace_md(&forward), ws);
    p->steps = 1;
    p->result = backward ? x : y;
    if (backward) {
        struct step *s = &p->step[0];

        step_run(&forward);
        pool_pd(s, &w, &m, &forward);
        add_arg(s, DNNL_ARG_DIFF_DST, REF(m.y), k->tensor[ROLE_DY].data);
        add_arg(s, DNNL_ARG_DIFF_SRC, REF(m.x), x);
        if (max)
            add_arg(s, DNNL_ARG_WORKSPACE, workspace_md(&forward), ws);
        step_end(&forward);
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

static void act_pd(struct step *s, const struct function *f, const md_t *md,
                   const struct step *forward)
{
#if V3
    if (forward)
        must(dnnl_eltwise_backward_primitive_desc_create(
                 &s->pd, engine, f->alg, *md, *md, *md, f->alpha, f->beta,
                 forward->pd, NULL),
             "activation, backward");
    else
        must(dnnl_eltwise_forward_primitive_desc_create(
                 &s->pd, engine, dnnl_forward_training, f->alg, *md, *md,
                 f->alpha, f->beta, NULL),
             "activation");
#else
    dnnl_eltwise_desc_t d;

    if (forward)
        must(dnnl_eltwise_backward_desc_init(&d, f->alg, md, md, f->alpha,
                                             f->beta),
             "activation, backward");
    else
        must(dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training, f->alg,
                                            md, f->alpha, f->beta),
             "activation");
    must(dnnl_primitive_desc_create(&s->pd, &d, NULL, engine,
                                    forward ? forward->pd : NULL),
         "activation");
#endif
    step_begin(s);
}

/* y = act(x); backward: dx = dy act'(x), where x and y are of a forward run. */
static void add_act(struct dnn_peer *p, enum ddp_act act, const md_t *md,
                    bool backward, void *x, void *y, void *dy, void *dx)
{
    const struct function *f = &functions[act];
    struct step *s = &p->step[p->steps++], forward = {.args = 0};

    act_pd(backward ? &forward : s, f, md, NULL);
    if (!backward) {
        add_arg(s, DNNL_ARG_SRC, REF(*md), x);
        add_arg(s, DNNL_ARG_DST, REF(*md), y);
        return;
    }
    act_pd(s, f, md, &forward);
    add_arg(s, f->from_y ? DNNL_ARG_DST : DNNL_ARG_SRC, REF(*md),
            f->from_y ? y : x);
    add_arg(s, DNNL_ARG_DIFF_DST, REF(*md), dy);
    add_arg(s, DNNL_ARG_DIFF_SRC, REF(*md), dx);
    step_end(&forward);
}

static void new_act(struct dnn_peer *p, struct check *k, bool backward)
{
    md_t md = image(&k->tensor[ROLE_X], k->row.cap);

    p->result = own(p, size_of(REF(md)));
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

static void norm_pd(struct step *s, const struct norm *m, bool relu,
                    const struct step *forward)
{
    unsigned flags = dnnl_use_scale | dnnl_use_shift |
                     (relu ? (unsigned)dnnl_fuse_norm_relu : 0);

#if V3
    if (forward)
        must(dnnl_batch_normalization_backward_primitive_desc_create(
                 &s->pd, engine, dnnl_backward, m->x, m->x, m->x, 1e-5f, flags,
                 forward->pd, NULL),
             "norm, backward");
    else
        must(dnnl_batch_normalization_forward_primitive_desc_create(
                 &s->pd, engine, dnnl_forward_training, m->x, m->x, 1e-5f,
                 flags, NULL),
             "norm");
#else
    dnnl_batch_normalization_desc_t d;

    if (forward)
        must(dnnl_batch_normalization_backward_desc_init(
                 &d, dnnl_backward, &m->x, &m->x, 1e-5f, flags),
             "norm, backward");
    else
        must(dnnl_batch_normalization_forward_desc_init(
                 &d, dnnl_forward_training, &m->x, 1e-5f, flags),
             "norm");
    must(dnnl_primitive_desc_create(&s->pd, &d, NULL, engine,
                                    forward ? forward->pd : NULL),
         "norm");
#endif
    step_begin(s);
}

/* Scale and shift, or their gradients. */
static void add_channels(struct step *s, const struct norm *m, bool gradient,
                         float *w, int c)
{
    add_arg(s, gradient ? DNNL_ARG_DIFF_SCALE : DNNL_ARG_SCALE,
            REF(m->channels), w);
    add_arg(s, gradient ? DNNL_ARG_DIFF_SHIFT : DNNL_ARG_SHIFT,
            REF(m->channels), w + c);
}

static void add_statistics(struct step *s, const struct norm *m)
{
    add_arg(s, DNNL_ARG_MEAN, REF(m->channels), m->mean);
    add_arg(s, DNNL_ARG_VARIANCE, REF(m->channels), m->var);
    if (m->ws)
        add_arg(s, DNNL_ARG_WORKSPACE,
                dnnl_primitive_desc_query_md(s->pd, dnnl_query_workspace_md, 0),
                m->ws);
}

/* y = act(x + r) */
static void add_sum(struct dnn_peer *p, enum ddp_act act, const md_t *md,
                    void *x, void *r, void *y)
{
    struct step *s = &p->step[p->steps++];
    dnnl_primitive_attr_t attr;

    must(ddp__dnn_attr(&attr, false, act), "sum's activation");
#if V3
    must(dnnl_binary_primitive_desc_create(&s->pd, engine, dnnl_binary_add, *md,
                                           *md, *md, attr),
         "sum");
#else
    dnnl_binary_desc_t d;

    must(dnnl_binary_desc_init(&d, dnnl_binary_add, md, md, md), "sum");
    must(dnnl_primitive_desc_create(&s->pd, &d, attr, engine, NULL), "sum");
#endif
    dnnl_primitive_attr_destroy(attr);
    step_begin(s);
    add_arg(s, DNNL_ARG_SRC_0, REF(*md), x);
    add_arg(s, DNNL_ARG_SRC_1, REF(*md), r);
    add_arg(s, DNNL_ARG_DST, REF(*md), y);
}

static struct step norm_forward(struct dnn_peer *p, struct check *k,
                                struct norm *m, bool relu, void *y)
{
    struct step s = {.args = 0};

    norm_pd(&s, m, relu, NULL);
    m->ws = relu ? own(p, size_of(workspace_md(&s))) : NULL;
    add_arg(&s, DNNL_ARG_SRC, REF(m->x), k->tensor[ROLE_X].data);
    add_arg(&s, DNNL_ARG_DST, REF(m->x), y);
    add_channels(&s, m, false, k->tensor[ROLE_W].data, k->row.x.c);
    add_statistics(&s, m);
    return s;
}

/* The gradient of the norm's result is dz. */
static void norm_backward(struct dnn_peer *p, struct check *k, struct norm *m,
                          const struct step *forward, void *dz)
{
    struct step *s = &p->step[p->steps++];
    float *g = own(p, 2 * (size_t)k->row.x.c * sizeof(*g));

    norm_pd(s, m, m->ws != NULL, forward);
    add_arg(s, DNNL_ARG_SRC, REF(m->x), k->tensor[ROLE_X].data);
    add_arg(s, DNNL_ARG_DIFF_DST, REF(m->x), dz);
    add_arg(s, DNNL_ARG_DIFF_SRC, REF(m->x), p->result);
    add_channels(s, m, false, k->tensor[ROLE_W].data, k->row.x.c);
    add_channels(s, m, true, g, k->row.x.c);
    add_statistics(s, m);
}

/* relu alone is a part of oneDNN's norm; other activations, and a sum before
 * them, are a step of their own. */
static void new_norm(struct dnn_peer *p, struct check *k, bool backward)
{
    enum ddp_act act = k->row.call.bn.act;
    bool sum = k->row.call.bn.residual, relu = act == DDP_RELU && !sum;
    bool alone = relu || (act == DDP_IDENTITY && !sum);
    struct norm m = {.x = image(&k->tensor[ROLE_X], k->row.cap),
                     .channels = vector(k->row.x.c)};
    size_t size = size_of(REF(m.x)), c = (size_t)k->row.x.c * sizeof(float);
    void *between = alone ? NULL : own(p, size);
    struct step forward;

    m.mean = own(p, c);
    m.var = own(p, c);
    p->result = own(p, size);
    forward = norm_forward(p, k, &m, relu, alone ? p->result : between);
    if (backward) {
        void *dy = k->tensor[ROLE_DY].data;
        void *dz = alone || act == DDP_IDENTITY ? dy : own(p, size);

        step_run(&forward);
        if (dz != dy)
            add_act(p, act, &m.x, true, between, k->tensor[ROLE_Y].data, dy,
                    dz);
        norm_backward(p, k, &m, &forward, dz);
        step_end(&forward);
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

/* ---- layers with weights ------------------------------------------------ */

static struct ddp__dnn_shape shape_of(const struct check *k)
{
    struct ddp_shape x = k->row.x, y = k->row.y;
    struct ddp__dnn_shape s = {.type = k->dtype,
                               .n = k->row.cap,
                               .h = x.h,
                               .w = x.w,
                               .c = x.c,
                               .oh = y.h,
                               .ow = y.w,
                               .o = y.c,
                               .conv = k->row.call.conv};

    s.conv.bias |= k->row.family == CHECK_CONV_NORM;
    s.dense = k->row.family == CHECK_DENSE;
    if (s.dense) /* of one pixel */
        s.conv = (struct ddp__conv){.kh = 1,
                                    .kw = 1,
                                    .sh = 1,
                                    .sw = 1,
                                    .dh = 1,
                                    .dw = 1,
                                    .groups = 1,
                                    .bias = k->row.call.dense.bias};
    return s;
}

/* w with its taps in the other order. */
static void *turned_weights(struct dnn_peer *p, const struct check *k)
{
    const struct check_tensor *w = &k->tensor[ROLE_W];
    int taps = k->row.call.conv.kh * k->row.call.conv.kw;
    size_t c = (size_t)(k->row.x.c / k->row.call.conv.groups);
    float *to = own(p, w->size);

    for (int i = 0; i < k->row.y.c * taps; i++) {
        int from = i / taps * taps + taps - 1 - i % taps;

        memcpy(to + (size_t)i * c, (float *)w->data + (size_t)from * c,
               c * sizeof(*to));
    }
    return to;
}

/* oneDNN 2 has a faster data gradient where strides are 1: the forward pass
 * with turned weights. */
static bool new_layer(struct dnn_peer *p, struct check *k,
                      enum ddp__dnn_pass pass)
{
    struct ddp__dnn_shape s = shape_of(k), turned;
    bool turn = pass == DDP__BWD_X && ddp__plan_transpose(&s, &turned);
    struct check_tensor *dx = &k->tensor[ROLE_DX], *g = &k->tensor[ROLE_G];

    if (ddp__dnn_new(&p->dnn, turn ? &turned : &s, turn ? DDP__FWD : pass,
                     turn) < 0)
        return false;
    p->keeps = k->row.family == CHECK_CONV_NORM;
    p->packed = own(p, ddp__dnn_packed_size(p->dnn));
    p->scratch = own(p, ddp__dnn_scratch(p->dnn));
    p->bias = own(p, (size_t)s.o * sizeof(float));
    p->x = k->tensor[ROLE_X].data;
    p->y = k->tensor[pass == DDP__FWD ? ROLE_Y : ROLE_DY].data;
    p->w = turn ? turned_weights(p, k) : k->tensor[ROLE_W].data;
    if (pass == DDP__FWD)
        p->result = p->y = own(p, k->tensor[ROLE_Y].size);
    else if (pass == DDP__BWD_W)
        p->result = p->w = own(p, g->size);
    else if (turn)
        p->x = p->y, p->result = p->y = own(p, dx->size);
    else
        p->result = p->x = own(p, dx->size);
    if (p->keeps)
        ddp__dnn_pack(p->dnn, p->w, p->packed, p->scratch);
    p->steps = pass == DDP__BWD_W ? -1 : 0; /* packed gradients come after */
    return true;
}

static void run_layer(struct dnn_peer *p)
{
    bool gradient = p->steps < 0;
    int rc = 0;

    if (!gradient && !p->keeps)
        rc = ddp__dnn_pack(p->dnn, p->w, p->packed, p->scratch);
    if (rc == 0)
        rc = ddp__dnn_run(p->dnn, p->x, p->packed, p->bias, p->y, p->scratch);
    if (rc == 0 && gradient)
        rc = ddp__dnn_pack(p->dnn, p->packed, p->w, p->scratch);
    if (rc < 0)
        bail_out("%s", ddp_errmsg());
}

/* ---- all of it ---------------------------------------------------------- */

static bool open_peer(struct dnn_peer *p, struct check *k, enum ddp__op op)
{
    bool forward = op == check_kinds[k->row.family].op[0];
    bool weights = ddp__op_is(op, DDP__IS_BWD_W);

    p->role = forward ? ROLE_Y : weights ? ROLE_G : ROLE_DX;
    switch (k->row.family) {
    case CHECK_MAX_POOL:
    case CHECK_MEAN_POOL:
        new_pool(p, k, !forward);
        return true;
    case CHECK_ACT:
        new_act(p, k, !forward);
        return true;
    case CHECK_BN:
        new_norm(p, k, !forward);
        return true;
    default:
        return new_layer(p, k,
                         forward   ? DDP__FWD
                         : weights ? DDP__BWD_W
                                   : DDP__BWD_X);
    }
}

struct dnn_peer *dnn_peer_new(struct check *k, enum ddp__op op)
{
    struct dnn_peer *p = calloc(1, sizeof(*p));

    if (!p)
        bail_out("out of memory");
    start();
    if (open_peer(p, k, op))
        return p;
    dnn_peer_free(p);
    return NULL;
}

void dnn_peer_free(struct dnn_peer *p)
{
    if (!p)
        return;
    while (p->steps > 0)
        step_end(&p->step[--p->steps]);
    ddp__dnn_free(p->dnn);
    while (p->owns > 0)
        free(p->own[--p->owns]);
    free(p);
}

void dnn_peer_run(struct dnn_peer *p)
{
    if (p->dnn)
        run_layer(p);
    for (int i = 0; i < p->steps; i++)
        step_run(&p->step[i]);
}

double dnn_peer_differs(const struct dnn_peer *p, struct check *k)
{
    struct check_tensor *ours = &k->tensor[p->role], theirs = *ours;

    theirs.data = p->result;
    return check_compare(ours, &theirs, 0, check_len(ours, k->row.cap), 0).norm;
}
