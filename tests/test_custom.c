/* test_custom.c - layers of a program's own
 *
 * The layer "curve" has parameters and kernels for both directions; its
 * gradients must be the slopes of its output.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/context.h"
#include "backends.h"
#include "custom_data.h"
#include "tap.h"

static ddp_t *ddp;

static double dot(const float *a, const float *b, size_t len)
{
    double sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

/* ---- curve: y = scale x + bend x^2, for each channel --------------------- */

struct curve {
    ddp_layer_t layer;
    int channels;
    int *freed; /* not owned: how many were */
};

static int curve_shape(const ddp_layer_t *l, struct ddp_shape x,
                       struct ddp_shape *y)
{
    *y = x;
    return x.c == ((const struct curve *)l)->channels ? 0 : DDP_ESHAPE;
}

static int curve_params(const ddp_layer_t *l, struct ddp_param p[])
{
    int c = ((const struct curve *)l)->channels;

    p[0] = (struct ddp_param){"scale", DDP_WEIGHT, 1, {c}, .fill = 1};
    p[1] = (struct ddp_param){"bend", DDP_WEIGHT, 1, {c}, .bound = 0.5f};
    return 2;
}

static int curve_run(const struct ddp_kernel_args *a)
{
    const float *x = a->buf[0].data, *w = a->buf[1].data;
    size_t c = (size_t)a->buf[0].shape.c;
    float *y = a->buf[2].data;

    for (size_t i = 0; i < length(a, 0); i++)
        y[i] = (w[i % c] + w[c + i % c] * x[i]) * x[i];
    return 0;
}

static int curve_run_back(const struct ddp_kernel_args *a)
{
    const float *x = a->buf[0].data, *w = a->buf[1].data, *dy = a->buf[2].data;
    size_t c = (size_t)a->buf[0].shape.c;
    float *g = a->buf[3].data, *dx = a->buffers > 4 ? a->buf[4].data : NULL;

    if (!a->accumulate)
        memset(g, 0, 2 * c * sizeof(*g));
    for (size_t i = 0; i < length(a, 0); i++) {
        g[i % c] += dy[i] * x[i];
        g[c + i % c] += dy[i] * x[i] * x[i];
        if (dx)
            dx[i] = dy[i] * (w[i % c] + 2 * w[c + i % c] * x[i]);
    }
    return 0;
}

static ddp_value_t *curve_forward(ddp_layer_t *l, ddp_graph_t *g,
                                  ddp_value_t *x)
{
    static const struct ddp_kernel k = {"curve", {curve_run}};
    ddp_value_t *w = ddp_graph_param(g, l);
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    if (ddp_graph_call(g, &k, NULL, 3, (ddp_value_t *[]){x, w, y},
                       (enum ddp_access[]){DDP_READ, DDP_READ, DDP_WRITE}) < 0)
        return NULL;
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

static ddp_value_t *curve_backward(ddp_layer_t *l, ddp_graph_t *g,
                                   const struct ddp_record *r, ddp_value_t *dy)
{
    static const struct ddp_kernel k = {"curve back", {curve_run_back}};
    bool needs = ddp_value_needs_gradient(r->x);
    ddp_value_t *dx =
        needs ? ddp_graph_value(g, ddp_value_shape(r->x), DDP_F32) : NULL;

    if (ddp_graph_call(g, &k, NULL, needs ? 5 : 4,
                       (ddp_value_t *[]){r->x, ddp_graph_param(g, l), dy,
                                         ddp_graph_param_gradient(g, l), dx},
                       (enum ddp_access[]){DDP_READ, DDP_READ, DDP_READ,
                                           DDP_WRITE, DDP_WRITE}) < 0)
        return NULL;
    return dx;
}

static void curve_free(ddp_layer_t *l)
{
    if (((struct curve *)l)->freed)
        ++*((struct curve *)l)->freed;
}

static const struct ddp_layer_ops curve_ops = {
    .kind = "curve",
    .shape = curve_shape,
    .params = curve_params,
    .forward = curve_forward,
    .backward = curve_backward,
    .free = curve_free,
};

static ddp_layer_t *curve_new(int channels, int *freed)
{
    ddp_layer_t *l = ddp_layer_new(sizeof(struct curve), &curve_ops);

    if (l) {
        ((struct curve *)l)->channels = channels;
        ((struct curve *)l)->freed = freed;
    }
    return l;
}

/* ---- its gradients ------------------------------------------------------ */

static ddp_chain_t *curved(int *freed)
{
    return ddp_chain_new(ddp_conv_new(C, 5, 3, NULL), curve_new(5, freed),
                         ddp_tanh_new(), ddp_global_mean_pool_new(),
                         ddp_layer_set_name(curve_new(5, freed), "last"),
                         ddp_dense_new(5, OUT, NULL), DDP_END);
}

/* sum of dy times the chain's output on x */
static double objective(ddp_chain_t *c, const float *x, const float *dy)
{
    float y[Y_LEN] = {NAN};
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, x, in, N, 2, y);

    ddp_pullback_free(p);
    return p ? dot(y, dy, Y_LEN) : NAN;
}

/* The slope of the objective along `way`, by a step of STEP both ways.
 *
 * f32 rounds y at 6e-8 of values around 1, so that the difference of sums of
 * 24 of them is off by 3e-7 / STEP = 6e-5; the third derivative times STEP^2
 * adds about as much.  The slopes here are around 1: 1e-3 is ample. */
#define STEP 5e-3f
#define SLOPE_TOLERANCE 1e-3

static double slope_of_x(ddp_chain_t *c, const float *x, const float *dy,
                         const float *way)
{
    float at[X_LEN];
    double d[2];

    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < X_LEN; i++)
            at[i] = x[i] + (s ? -STEP : STEP) * way[i];
        d[s] = objective(c, at, dy);
    }
    return (d[0] - d[1]) / (2 * (double)STEP);
}

static double slope_of_param(ddp_chain_t *c, const struct ddp_param_info *p,
                             const float *x, const float *dy, const float *way)
{
    float *w = malloc(2 * p->len * sizeof(*w)), *at = w + p->len;
    double d[2];

    ddp_chain_get(c, p->name, w, p->len);
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < p->len; i++)
            at[i] = w[i] + (s ? -STEP : STEP) * way[i];
        ddp_chain_set(c, p->name, at, p->len);
        d[s] = objective(c, x, dy);
    }
    ddp_chain_set(c, p->name, w, p->len);
    free(w);
    return (d[0] - d[1]) / (2 * (double)STEP);
}

static void test_slopes(void)
{
    ddp_chain_t *c = curved(NULL);
    float *x = numbers(1, X_LEN), *dy = numbers(1000, Y_LEN), dx[X_LEN];
    float *way = numbers(2000, 1000), *g = malloc(1000 * sizeof(*g));
    ddp_pullback_t *p;
    struct ddp_param_info info;

    ddp_chain_init(c, 3);
    p = ddp_pullback_new(ddp, c, x, in, N, 2, NULL);
    ok(p && ddp_pullback_backward(p, dy, dx) == 0,
       "a chain with custom layers");
    is_near(dot(dx, way, X_LEN), slope_of_x(c, x, dy, way), SLOPE_TOLERANCE,
            "dx through them is the slope of the output");
    for (int i = 0; ddp_chain_param(c, i, &info) == 0; i++) {
        ok(ddp_pullback_get_gradient(p, info.name, g, info.len) == 0,
           "%s has a gradient", info.name);
        is_near(dot(g, way, info.len), slope_of_param(c, &info, x, dy, way),
                SLOPE_TOLERANCE, "%s: the slope of the output", info.name);
    }
    ddp_pullback_free(p);
    ddp_chain_free(c);
    free(x);
    free(dy);
    free(way);
    free(g);
}

/* ---- accumulation ------------------------------------------------------- */

/* One lane that adds up three sub-batches has the gradient of all samples. */
static void test_accumulation(void)
{
    struct ddp_train_config cfg = training;
    ddp_chain_t *chain = curved(NULL);
    ddp_dataset_t *d = samples(N);
    ddp_trainer_t *t[2];
    struct ddp_param_info p;
    float g[2][1000];

    cfg.order = DDP_IN_ORDER;
    cfg.sub_batch = N;
    t[0] = ddp_trainer_new(ddp, chain, d, &cfg);
    cfg.keep_weights = true;
    cfg.sub_batch = 2;
    cfg.lanes = 1;
    t[1] = ddp_trainer_new(ddp, chain, d, &cfg);
    for (int k = 0; k < 2; k++)
        ok(t[k] && ddp_trainer_gradients(t[k], NULL) == 0, "gradients, %s",
           k ? "three sub-batches in one lane" : "all samples together");
    for (int i = 0; ddp_chain_param(chain, i, &p) == 0; i++) {
        double off = 0, size = 0;

        for (int k = 0; k < 2; k++)
            ddp_trainer_get_gradient(t[k], p.name, g[k], p.len);
        for (size_t k = 0; k < p.len; k++) {
            off += fabs((double)g[0][k] - g[1][k]);
            size += fabs((double)g[0][k]);
        }
        /* f32 sums of 72 terms in another order */
        ok(size > 0 && off <= 1e-5 * size, "%s: the same gradient", p.name);
    }
    for (int k = 0; k < 2; k++)
        ddp_trainer_free(t[k]);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* ---- options ------------------------------------------------------------ */

static int curve_options(const ddp_layer_t *l, struct ddp_option o[])
{
    (void)l;
    o[0] = (struct ddp_option){"degree", 2, NULL};
    o[1] = (struct ddp_option){.name = "kind", .text = "polynomial"};
    return 2;
}

static int too_many_options(const ddp_layer_t *l, struct ddp_option o[])
{
    (void)l;
    (void)o;
    return DDP_MAX_OPTIONS + 1;
}

/* "KIND name=value ..." of every layer, one after another. */
static int append_options(const struct ddp_layer_info *l, void *arg)
{
    char *text = arg;

    strcat(text, l->kind);
    for (int i = 0; i < l->options; i++) {
        const struct ddp_option *o = &l->option[i];
        size_t n = strlen(text);

        if (o->text)
            sprintf(text + n, " %s=%s", o->name, o->text);
        else
            sprintf(text + n, " %s=%g", o->name, o->value);
    }
    strcat(text, "; ");
    return 0;
}

static void test_options(void)
{
    struct ddp_layer_ops ops = curve_ops;
    ddp_layer_t *l = ddp_layer_new(sizeof(struct curve), &ops);
    ddp_chain_t *c;
    char text[1000] = "";

    ops.options = curve_options;
    ((struct curve *)l)->channels = 5;
    c = ddp_chain_new(
        ddp_conv_new(C, 5, 3,
                     &(struct ddp_conv_options){CONV_DEFAULTS, .kernel_w = 1,
                                                .stride = 2, .pad = 1}),
        l, curve_new(5, NULL), ddp_silu_new(), ddp_global_mean_pool_new(),
        DDP_END);
    is_int(ddp_chain_inspect(c, in, DDP_F32, append_options, text), 0,
           "a chain is inspected");
    is_str(text,
           "conv kernel_h=3 kernel_w=1 stride_h=2 stride_w=2 dilation_h=1 "
           "dilation_w=1 pad_top=1 pad_left=1 pad_bottom=1 pad_right=1 "
           "groups=1; curve degree=2 kind=polynomial; curve; "
           "activation function=silu; mean_pool out_h=1 out_w=1; ",
           "options come with their defaults resolved, those of a custom "
           "layer too");
    ops.options = too_many_options;
    is_int(ddp_chain_inspect(c, in, DDP_F32, append_options, text), DDP_EINVAL,
           "more options than there is room for: %s", ddp_errmsg());
    ddp_chain_free(c);
}

/* ---- what is refused ---------------------------------------------------- */

/* The layer itself cannot report what is wrong. */
static void test_misfit(void)
{
    ddp_chain_t *c = ddp_chain_new(curve_new(C + 1, NULL), DDP_END);
    float x[X_LEN] = {0}, y[X_LEN];
    int rc = ddp_chain_forward(ddp, c, x, DDP_F32, in, N, 0, y);

    ok(rc == DDP_ESHAPE && strstr(ddp_errmsg(), "curve"),
       "a shape that does not fit is reported with the layer's kind: %s",
       ddp_errmsg());
    ddp_chain_free(c);
}

static ddp_value_t *nothing_forward(ddp_layer_t *l, ddp_graph_t *g,
                                    ddp_value_t *x)
{
    (void)l;
    (void)g;
    (void)x;
    return NULL;
}

static ddp_value_t *no_cpu_forward(ddp_layer_t *l, ddp_graph_t *g,
                                   ddp_value_t *x)
{
    static const struct ddp_kernel k = {"nowhere", {NULL}};

    (void)l;
    return ddp_graph_call(g, &k, NULL, 1, &x, (enum ddp_access[]){DDP_READ}) < 0
               ? NULL
               : x;
}

static ddp_value_t *many_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    static const struct ddp_kernel k = {"many", {curve_run}};
    ddp_value_t *buf[DDP_MAX_BUFFERS + 1];
    enum ddp_access access[DDP_MAX_BUFFERS + 1];

    for (int i = 0; i <= DDP_MAX_BUFFERS; i++) {
        buf[i] = x;
        access[i] = DDP_READ;
    }
    (void)l;
    return ddp_graph_call(g, &k, NULL, DDP_MAX_BUFFERS + 1, buf, access) < 0
               ? NULL
               : x;
}

static int params_returned;
static int bad_dim = C;

static int bad_params(const ddp_layer_t *l, struct ddp_param p[])
{
    curve_params(l, p);
    p[1].dim[0] = bad_dim;
    return params_returned;
}

static ddp_value_t *no_gradient(ddp_layer_t *l, ddp_graph_t *g,
                                const struct ddp_record *r, ddp_value_t *dy)
{
    curve_backward(l, g, r, dy);
    return NULL;
}

/* A curve with another table, between layers that have parameters. */
static ddp_chain_t *around(const struct ddp_layer_ops *ops)
{
    ddp_layer_t *l = ddp_layer_new(sizeof(struct curve), ops);

    ((struct curve *)l)->channels = C;
    return ddp_chain_new(ddp_batch_norm_new(C, NULL), l, DDP_END);
}

static void test_bad_params(void)
{
    struct ddp_layer_ops ops = curve_ops;
    struct ddp_param_info info;
    int counts[] = {99, -3, DDP_MAX_PARAMS + 1};
    ddp_chain_t *c;

    ops.params = bad_params;
    for (int i = 0; i < 3; i++) {
        params_returned = counts[i];
        c = around(&ops);
        ok(ddp_chain_param(c, 0, &info) == DDP_EINVAL &&
               strstr(ddp_errmsg(), "curve: params returned"),
           "a layer with %d parameters: %s", counts[i], ddp_errmsg());
        ddp_chain_free(c);
    }
    params_returned = 2;
    bad_dim = -5;
    c = around(&ops);
    ok(ddp_chain_init(c, 1) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "dimension 0 of bend is -5"),
       "a parameter of -5 values: %s", ddp_errmsg());
    bad_dim = C;
    ddp_chain_free(c);
}

static void test_no_gradient(void)
{
    struct ddp_layer_ops ops = curve_ops;
    float x[X_LEN] = {0};
    ddp_chain_t *c;
    ddp_pullback_t *p;

    ops.backward = no_gradient;
    c = around(&ops);
    p = ddp_pullback_new(ddp, c, x, in, N, 0, NULL);
    ok(!p && ddp_errcode() == DDP_EINVAL &&
           strstr(ddp_errmsg(), "curve: backward returned no gradient"),
       "a backward without the gradient that the layer before needs: %s",
       ddp_errmsg());
    ddp_pullback_free(p);
    ddp_chain_free(c);
}

static void test_bad_layers(void)
{
    static const struct {
        const char *what, *says;
        ddp_value_t *(*forward)(ddp_layer_t *, ddp_graph_t *, ddp_value_t *);
    } bad[] = {
        {"a forward that returns NULL", "returned no value", nothing_forward},
        {"a kernel for no device", "kernel needs", no_cpu_forward},
        {"too many buffers", "buffers", many_forward},
    };
    float x[X_LEN] = {0}, y[X_LEN];

    for (int i = 0; i < 3; i++) {
        struct ddp_layer_ops ops = curve_ops;
        ddp_layer_t *l = ddp_layer_new(sizeof(struct curve), &ops);
        ddp_chain_t *c;
        int rc;

        ((struct curve *)l)->channels = C;
        ops.forward = bad[i].forward;
        c = ddp_chain_new(l, DDP_END);
        rc = ddp_chain_forward(ddp, c, x, DDP_F32, in, N, 0, y);
        ok(rc == DDP_EINVAL && strstr(ddp_errmsg(), bad[i].says), "%s: %s",
           bad[i].what, ddp_errmsg());
        ddp_chain_free(c);
    }
    ok(!ddp_layer_new(1, &curve_ops), "a layer smaller than ddp_layer_t");
    ok(!ddp_layer_new(sizeof(struct curve), NULL), "a layer without a table");
    for (int i = 0; i < 4; i++) {
        struct ddp_layer_ops ops = curve_ops;

        if (i == 0)
            ops.kind = NULL;
        if (i == 1)
            ops.shape = NULL;
        if (i == 2)
            ops.forward = NULL;
        if (i == 3)
            ops.backward = NULL;
        ok(!ddp_layer_new(sizeof(struct curve), &ops), "a table without %s",
           (const char *[]){"kind", "shape", "forward", "backward"}[i]);
    }
}

static void test_ownership(void)
{
    int freed = 0;
    ddp_chain_t *c = curved(&freed);

    ddp_chain_free(c);
    is_int(freed, 2, "a chain frees its layers");
    c = ddp_chain_new(curve_new(3, &freed), ddp_dense_new(0, 1, NULL),
                      curve_new(3, &freed), DDP_END);
    ok(!c, "a chain with a layer that could not be made cannot be made");
    is_int(freed, 4, "its other layers are freed");
    ok(!ddp_skip_new(ddp_dense_new(0, 1, NULL), curve_new(3, &freed)),
       "a skip over a branch that could not be made cannot be made");
    is_int(freed, 5, "its shortcut is freed");
}

int main(void)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (!(ddp = begin_backend(i)))
            continue;
        test_slopes();
        test_accumulation();
        test_options();
        test_misfit();
        test_bad_layers();
        test_bad_params();
        test_no_gradient();
        test_ownership();
        ddp_finish(ddp);
    }
    return done_testing();
}
