/* test_onnx.c - exported models compute what the chains do
 *
 * Every layer case and every named model is exported; oracle_onnx.py has the
 * files checked by the onnx package, and runs them.
 *
 * Tolerance: what test_layers.c allows for the f32 of a few layers, 2e-5 of the
 * norm, for either side; for whole networks what test_torch.c allows, 1e-4.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "defaults.h"
#include "graph/layer.h"
#include "layer_cases.h"
#include "oracle.h"
#include "runtime/context.h"
#include "tap.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

enum { SAMPLES = 3, MOST = 400 };

/* What was exported, and what the chain makes of its input. */
struct exported {
    char name[80];
    double tolerance;
    float *y; /* owned */
    size_t len;
};

static struct exported done[MOST];
static int exports;
static ddp_t *ddp;
static char dir[] = "/tmp/ddp-onnx-XXXXXX";
static uint32_t drawn = 1;

static float uniform(float low, float high)
{
    drawn = drawn * 1664525u + 1013904223u;
    return low + (high - low) * (float)(drawn >> 8) * 0x1p-24f;
}

/* Norms that are not the trivial ones. */
static void stir_norms(ddp_chain_t *c)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        bool around_1 = strstr(p.name, "var") || strstr(p.name, "weight");
        float *v;

        if (p.role != DDP_NORM && p.role != DDP_RUNNING)
            continue;
        v = malloc(p.len * sizeof(*v));
        for (size_t k = 0; k < p.len; k++)
            v[k] = around_1 ? uniform(0.7f, 1.3f) : uniform(-0.3f, 0.3f);
        ddp_chain_set(c, p.name, v, p.len);
        free(v);
    }
}

/* ---- exporting ---------------------------------------------------------- */

/* What the chain gives for this input; h 0: it does not take it. */
static struct ddp_shape output(const ddp_chain_t *c, struct ddp_shape in)
{
    struct ddp_shape out = {0, 0, 0};

    if (ddp__layer_shape(c, in, &out) < 0)
        out.h = 0;
    return out;
}

static bool write_input(const char *name, struct ddp_shape in, const float *x)
{
    struct ddp__st_out out = {
        "x", 4, {SAMPLES, in.h, in.w, in.c}, x, DDP__ST_F32};
    char path[200];

    snprintf(path, sizeof(path), "%s/%s.x", dir, name);
    return ddp__st_write(path, 1, &out) == 0;
}

/* What an export said of its file. */
struct told {
    int64_t bytes, count;
    int calls;
    bool grows;
};

static void on_count(int64_t bytes, int64_t count, void *arg)
{
    struct told *t = arg;

    t->grows = t->grows && bytes > t->bytes && bytes <= count;
    t->bytes = bytes;
    t->count = count;
    t->calls++;
}

/* A network of more than one piece of 4 MiB. */
static void test_count(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(1200, 1200, NULL), DDP_END);
    struct told t = {.grows = true};
    struct stat st = {0};
    char path[200];

    snprintf(path, sizeof(path), "%s/count.onnx", dir);
    is_int(ddp_chain_export_onnx(c, (struct ddp_shape){1, 1, 1200}, path,
                                 on_count, &t),
           0, "an export that counts");
    ok(t.grows && t.calls > 1, "says how far it is, %d times", t.calls);
    ok(stat(path, &st) == 0 && t.bytes == st.st_size && t.count == st.st_size,
       "up to the size of the file");
    unlink(path);
    ddp_chain_free(c);
}

/* Export c for this input, and keep what it makes of a random one.  len: the
 * values of a sample that come out. */
static void export(ddp_chain_t *c, const char *name, struct ddp_shape in,
                   size_t len, double tolerance)
{
    size_t n = (size_t)SAMPLES * (size_t)in.h * (size_t)in.w * (size_t)in.c;
    struct exported *e = &done[exports];
    float *x = malloc(n * sizeof(*x));
    char path[200];
    bool good;

    snprintf(e->name, sizeof(e->name), "%s", name);
    e->tolerance = tolerance;
    e->len = SAMPLES * len;
    e->y = malloc(e->len * sizeof(*e->y));
    for (size_t i = 0; i < n; i++)
        x[i] = uniform(-1, 1);
    snprintf(path, sizeof(path), "%s/%s.onnx", dir, name);
    good = ddp_chain_export_onnx(c, in, path, NULL, NULL) == 0 &&
           ddp_chain_forward(ddp, c, x, DDP_F32, in, SAMPLES, 2, e->y) == 0 &&
           write_input(name, in, x);
    if (!ok(good, "%s: exported", name)) {
        diag("%s", ddp_errmsg());
        free(e->y);
    } else {
        exports++;
    }
    free(x);
}

static size_t len_of(struct ddp_shape s)
{
    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

/* Sizes that some case needs, and some that leave a remainder in windows. */
static const struct ddp_shape shapes[] = {
    {9, 7, 4},   {8, 10, 4}, {5, 8, 4}, {1, 1, 7},   {9, 7, 8},
    {21, 18, 3}, {6, 5, 17}, {1, 1, 2}, {1, 1, 300}, {21, 19, 3},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void export_cases(void)
{
    ddp_chain_t *c;
    char name[64], full[80];

    for (int i = 0; layer_case(i, name, &c); i++) {
        int fit = 0;

        ddp_chain_init(c, (uint64_t)i);
        stir_norms(c);
        for (int s = 0; s < SHAPES && exports < MOST && fit < 2; s++) {
            struct ddp_shape out;

            if (!(out = output(c, shapes[s])).h)
                continue;
            snprintf(full, sizeof(full), "%s-%d", name, s);
            export(c, full, shapes[s], len_of(out), 4e-5);
            fit++;
        }
        if (!fit)
            ok(0, "%s: takes some input", name);
        ddp_chain_free(c);
    }
}

/* Pools on more sizes, where what hangs over differs. */
static void export_pools(void)
{
    char name[80];

    for (int i = 0; i < 36; i++) {
        struct ddp_pool_options o = {POOL_DEFAULTS, .stride = 1 + i % 3,
                                     .pad = i / 3 % 2, .ceil_mode = true,
                                     .exclude_pad = i / 6 % 2};
        struct ddp_shape in = {7 + i % 5, 6 + i / 4 % 4, 2};
        ddp_chain_t *c = ddp_chain_new(i / 12 ? ddp_mean_pool_new(3, &o)
                                              : ddp_max_pool_new(3, &o),
                                       DDP_END);
        struct ddp_shape out = output(c, in);

        snprintf(name, sizeof(name), "pool-%d", i);
        export(c, name, in, len_of(out), 4e-5);
        ddp_chain_free(c);
    }
}

/* What inference leaves out, and what follows a flattened image. */
static void export_others(void)
{
    const struct ddp_shape in = {4, 3, 5};
    ddp_chain_t *c =
        ddp_chain_new(ddp_conv_new(5, 6, 1, NULL), ddp_dropout_new(0.5f),
                      ddp_stochastic_depth_new(0.5f), DDP_END);

    export(c, "dropout", in, 72, 4e-5);
    ddp_chain_free(c);
    c = ddp_chain_new(ddp_flatten_new(), ddp_relu_new(), ddp_dropout_new(0.1f),
                      ddp_dense_new(60, 4, NULL), ddp_flatten_new(), DDP_END);
    export(c, "flatten-relu-dense", in, 4, 4e-5);
    ddp_chain_free(c);
    c = ddp_chain_new(ddp_flatten_new(), ddp_batch_norm_new(60, NULL),
                      ddp_dense_new(60, 4, NULL), DDP_END);
    stir_norms(c);
    export(c, "flatten-norm-dense", in, 4, 4e-5);
    ddp_chain_free(c);
    c = ddp_chain_new(ddp_adaptive_mean_pool_new(2, 3), DDP_END);
    export(c, "adaptive-whole", (struct ddp_shape){8, 9, 2}, 12, 4e-5);
    ddp_chain_free(c);
}

/* What is flattened last comes out in PyTorch's order, (c, h, w). */
static void export_flatten(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_flatten_new(), DDP_END);
    float *y, ours[SAMPLES * 60];

    export(c, "flatten-last", (struct ddp_shape){4, 3, 5}, 60, 4e-5);
    ddp_chain_free(c);
    y = done[exports - 1].y;
    memcpy(ours, y, sizeof(ours));
    for (size_t n = 0; n < SAMPLES; n++)
        for (size_t i = 0; i < 60; i++)
            y[n * 60 + i % 5 * 12 + i / 5] = ours[n * 60 + i];
}

/* The larger ones with make check-long only. */
static void export_models(void)
{
    static const struct ddp_shape sizes[] = {
        {64, 64, 3}, {28, 28, 1}, {224, 224, 3}, {299, 299, 3}};
    /* Only some families come in other widths. */
    const struct ddp_model_options narrow = {MODEL_DEFAULTS, .classes = 10,
                                             .width = 16};
    const struct ddp_model_options plain = {MODEL_DEFAULTS, .classes = 10};
    const char *name;

    for (int i = 0; (name = ddp_model_name(i)); i++) {
        ddp_chain_t *c = ddp_model_new(name, &narrow);
        struct ddp_shape out = {0, 0, 0};
        struct ddp_param_info p;
        size_t params = 0;
        int s = 0;

        if (!c && !(c = ddp_model_new(name, &plain)))
            bail_out("%s", ddp_errmsg());
        for (int k = 0; ddp_chain_param(c, k, &p) == 0; k++)
            params += p.len;
        while (s < 4 && !(out = output(c, sizes[s])).h)
            s++;
        if (params > 6000000 && !getenv("DDP_LONG")) {
            skip(1, "%s: %zu parameters, for make check-long", name, params);
        } else if (ok(s < 4, "%s: takes some input", name)) {
            stir_norms(c);
            export(c, name, sizes[s], len_of(out), 2e-4);
        }
        ddp_chain_free(c);
    }
}

/* ---- comparing ---------------------------------------------------------- */

static void compare(const struct oracle *o, const char *by)
{
    int missing = 0;

    for (int i = 0; i < exports; i++) {
        const struct exported *e = &done[i];
        const struct oracle_tensor *t = oracle_find(o, "%s/%s", e->name, by);
        double d = t && t->len == e->len
                       ? oracle_distance(t->data, e->y, e->len)
                       : INFINITY;

        missing += !t;
        if (t && !ok(d <= e->tolerance, "%s: the same by %s", e->name, by))
            diag("off by %.3g", d);
    }
    if (missing == exports)
        skip(1, "no onnxruntime (DDP_PYTHON names a python3 that has it)");
    else
        is_int(missing, 0, "every model was run by %s", by);
}

/* ---- what cannot be exported -------------------------------------------- */

static int own_shape(const ddp_layer_t *l, struct ddp_shape x,
                     struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static int own_kernel(const struct ddp_kernel_args *a)
{
    (void)a;
    return 0;
}

static ddp_value_t *own_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    static const struct ddp_kernel kernel = {"swirl", {own_kernel}};
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    ddp_graph_call(g, &kernel, NULL, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

static ddp_value_t *own_backward(ddp_layer_t *l, ddp_graph_t *g,
                                 const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    (void)g;
    (void)r;
    return dy;
}

static void test_refused(void)
{
    static const struct ddp_layer_ops own = {.kind = "own",
                                             .shape = own_shape,
                                             .forward = own_forward,
                                             .backward = own_backward};
    const struct ddp_shape in = {1, 1, 4};
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(4, 2, NULL), DDP_END);
    char path[200];

    snprintf(path, sizeof(path), "%s/refused", dir);
    is_int(
        ddp_chain_export_onnx(c, (struct ddp_shape){2, 2, 4}, path, NULL, NULL),
        DDP_ESHAPE, "a shape that the chain does not take");
    is_int(ddp_chain_export_onnx(c, in, "/no/such/folder/x.onnx", NULL, NULL),
           DDP_EIO, "no folder");
    is_int(ddp_chain_export_onnx(NULL, in, path, NULL, NULL), DDP_EINVAL,
           "no chain");
    ddp_chain_free(c);
    c = ddp_chain_new(ddp_dense_new(4, 2, NULL),
                      ddp_layer_new(sizeof(ddp_layer_t), &own), DDP_END);
    is_int(ddp_chain_export_onnx(c, in, path, NULL, NULL), DDP_EINVAL,
           "a custom layer");
    ok(strstr(ddp_errmsg(), "swirl"), "is named: %s", ddp_errmsg());
    ok(access(path, F_OK) < 0, "and nothing is written");
    ddp_chain_free(c);
}

static void clean_up(void)
{
    struct dirent **entry;
    int n = scandir(dir, &entry, NULL, alphasort);
    char path[400];

    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, entry[i]->d_name);
        unlink(path);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
    rmdir(dir);
    for (int i = 0; i < exports; i++)
        free(done[i].y);
}

static void test_all(void)
{
    const char *python = oracle_python("onnx torch");
    struct oracle *o;

    export_cases();
    export_pools();
    export_others();
    export_flatten();
    export_models();
    if (!python) {
        skip(1, "no python3 with onnx and torch (DDP_PYTHON names one)");
        return;
    }
    if (!(o = oracle_new_by(python, "oracle_onnx.py", dir)))
        bail_out("oracle_onnx.py failed");
    compare(o, "torch");
    compare(o, "runtime");
    oracle_free(o);
}

int main(void)
{
    ddp_chain_t *c = ddp_dense_new(4, 2, NULL);

    if (ddp_chain_export_onnx(c, (struct ddp_shape){1, 1, 4}, "/dev/null/x",
                              NULL, NULL) == DDP_EINVAL &&
        strstr(ddp_errmsg(), "built without ONNX"))
        skip_all("%s", ddp_errmsg());
    ddp_chain_free(c);
    if (!mkdtemp(dir) || !(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    test_all();
    test_refused();
    test_count();
    clean_up();
    ddp_finish(ddp);
    return done_testing();
}
