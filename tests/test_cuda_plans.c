/* test_cuda_plans.c - cuDNN has a plan for what models ask, without a GPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * cuDNN chooses and compiles for a device that is described to it.  What it
 * compiles at run time takes about a second each, so only some of these are,
 * for the others its word is taken that it can: DDP_TEST_COMPILE=n for n of
 * each device and type, DDP_LONG=1 for a hundred.  Code that is compiled
 * cannot be loaded here, nor run: that it computes what it should is for
 * test_ops on a GPU.
 */
#include "config.h"

#ifndef HAVE_CUDA
#include "tap.h"

int main(void)
{
    skip_all("built without CUDA");
}
#else
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/bn.h"
#include "cuda/conv.h"
#include "cuda/variant.h"
#include "driver.h"
#include "graph/graph.h"
#include "remove_tree.h"
#include "tap.h"

/* cuDNN opens libraries and closes them again, and their beginnings of C++ look
 * like leaks. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- devices ------------------------------------------------------------ */

/* As their makers publish them. */
static struct device {
    const char *name;
    int capability, sms, shared, clock_khz, memory_khz, l2;
    double bytes;
    int left[2]; /* to compile, of f32 and the type of two bytes */
} devices[] = {
    {"A100", 800, 108, 166912, 1410000, 1593000, 41943040, 85e9, {0, 0}},
    {"H200", 900, 132, 232448, 1980000, 3201000, 62914560, 151e9, {0, 0}},
    {"B200", 1000, 148, 232448, 1965000, 3996000, 132644864, 192e9, {0, 0}},
    {"T4", 750, 40, 65536, 1590000, 5001000, 4194304, 16e9, {0, 0}},
};
enum { DEVICES = sizeof(devices) / sizeof(devices[0]) };

/* Before capability 8.0 there is no bf16, and cuDNN has no engine for batch
 * norm. */
static bool is_old(const struct device *d)
{
    return d->capability < 800;
}

static enum ddp_dtype half_of(const struct device *d)
{
    return is_old(d) ? DDP_F16 : DDP_BF16;
}

static const struct device *aimed; /* what plans are for */

static int aim(const struct device *d, bool tf32)
{
    char json[1024], name[64];

    aimed = d;
    snprintf(json, sizeof(json),
             "{\"maxGridSize\": [2147483647, 65535, 65535], "
             "\"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, "
             "\"multiProcessorCount\": %d, \"warpSize\": 32, "
             "\"maxSharedMemoryPerBlock\": 49152, "
             "\"maxSharedMemoryPerBlockOptin\": %d, "
             "\"reservedSharedMemoryPerBlock\": 1024, "
             "\"maxRegistersPerSM\": 65536, \"maxCtasPerSM\": 32, "
             "\"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, "
             "\"pciDeviceId\": 0, \"isTccDriver\": 0, "
             "\"supportCoopLaunch\": 1, \"smClockRateKHz\": %d, "
             "\"memClockRateKHz\": %d, \"l2CacheSize\": %d, "
             "\"deviceName\": \"NVIDIA %s\", \"deviceVer\": %d, "
             "\"driverVer\": 13000, \"cudaDeviceId\": 0, "
             "\"totalGlobalMem\": %.0f}",
             d->sms, d->shared, d->clock_khz, d->memory_khz, d->l2, d->name,
             d->capability, d->bytes);
    snprintf(name, sizeof(name), "described %s", d->name);
    return ddp__cudnn_target_json(name, json, tf32, false);
}

static void set_budget(void)
{
    const char *text = getenv("DDP_TEST_COMPILE");
    int n = text ? atoi(text) : getenv("DDP_LONG") ? 100 : 2;

    if (!have_driver()) {
        diag("no library of a driver, not even a stub: nothing is compiled");
        n = 0;
    }
    for (int d = 0; d < DEVICES; d++)
        devices[d].left[0] = devices[d].left[1] = n;
}

static const char *const type_names[] = {
    [DDP_F32] = "f32", [DDP_BF16] = "bf16", [DDP_F16] = "f16"};

static bool has_type(const struct device *d, enum ddp_dtype type)
{
    return type == DDP_F32 || type == half_of(d);
}

/* ---- calls -------------------------------------------------------------- */

/* Prepared as for a GPU; what it came to.  failed: or our kernels have to do
 * what cuDNN should have an engine for. */
struct outcome {
    int calls, failed, own, apart;
};

/* Batch norm with relu at most is for cuDNN, but for the gradient of a residual
 * without a mask. */
static bool for_cudnn(const struct ddp__call *c)
{
    if (ddp__op_is(c->op, DDP__IS_CONV))
        return true;
    return !is_old(aimed) && c->bn.act <= DDP_RELU &&
           (c->op == DDP__OP_BN_FWD || !c->bn.residual || c->bn.mask);
}

/* Whether a gradient that is to be added is not, for lack of an engine. */
static bool is_apart(const struct ddp__call *c,
                     const struct ddp__cuda_plan *plan)
{
    return c->sum && !plan->variant->fused;
}

static void try(const struct ddp__call *c, struct outcome *o)
{
    void *plan = NULL;
    int rc = ddp__op_is(c->op, DDP__IS_CONV) ? ddp__cuda_conv_prepare(c, &plan)
                                             : ddp__cuda_bn_prepare(c, &plan);

    o->calls++;
    if (rc < 0) {
        o->failed++;
        diag("%s", ddp_errmsg());
    } else if (!((struct ddp__cuda_plan *)plan)->variant->dnn) {
        o->own++;
        o->failed += for_cudnn(c);
    } else {
        o->apart += is_apart(c, plan);
    }
    ddp__cuda_plan_free(plan);
}

static bool is_ours(enum ddp__op op)
{
    return ddp__op_is(op, DDP__IS_CONV) || op == DDP__OP_BN_FWD ||
           op == DDP__OP_BN_BWD;
}

/* All that is for cuDNN in a graph, on one device. */
static struct outcome try_graph(const ddp_graph_t *g, struct device *d,
                                bool tf32)
{
    struct outcome o = {0, 0, 0, 0};
    int *left = &d->left[g->spec.dtype != DDP_F32];

    if (aim(d, tf32) < 0)
        bail_out("%s", ddp_errmsg());
    ddp__cudnn_targets[0].to_compile = *left;
    for (int i = 0; i < g->nodes; i++)
        if (is_ours(g->node[i]->call.op))
            try(&g->node[i]->call, &o);
    *left = ddp__cudnn_targets[0].to_compile > 0
                ? ddp__cudnn_targets[0].to_compile
                : 0;
    return o;
}

/* ---- models ------------------------------------------------------------- */

static int no_host(const struct ddp__task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}

static ddp_graph_t *build(ddp_chain_t *m, enum ddp__mode mode,
                          enum ddp_dtype dtype, int size)
{
    struct ddp__graph_spec spec = {.mode = mode,
                                   .shape = {size, size, 3},
                                   .type = DDP_F32,
                                   .dtype = dtype,
                                   .cap = 32,
                                   .channels = 8,
                                   .on_gpus = true,
                                   .fill = no_host,
                                   .fill_dy = no_host,
                                   .output = no_host};
    struct ddp__params *p = ddp__params_of(m);
    ddp_graph_t *g = NULL;

    if (!p || ddp__graph_new(&g, m, p, &spec, false) < 0)
        return NULL;
    return g;
}

static void test_graph(const char *model, ddp_chain_t *m, enum ddp__mode mode,
                       enum ddp_dtype dtype)
{
    const char *how = mode == DDP__PULL ? "training" : "evaluation";
    ddp_graph_t *g = build(m, mode, dtype, 224);

    if (!g && !(g = build(m, mode, dtype, 32))) {
        fail("%s, %s: %s", model, how, ddp_errmsg());
        return;
    }
    for (int d = 0; d < DEVICES; d++) {
        struct outcome o;

        if (!has_type(&devices[d], dtype))
            continue;
        o = try_graph(g, &devices[d], false);
        ok(o.failed == 0, "%s, %s, %s, %s: %d calls have plans", model, how,
           type_names[dtype], devices[d].name, o.calls);
        if (o.own)
            diag("%d of them by own kernels", o.own);
        if (o.apart)
            diag("%d of them add in another pass", o.apart);
    }
    ddp__graph_free(g);
}

/* One or two of each family; the others repeat their layers in other numbers,
 * and are tested with DDP_LONG=1.  There is nothing for cuDNN in an mlp. */
static bool is_tested(const char *name)
{
    static const char *const usual[] = {
        "alexnet",         "densenet121",       "efficientnet_b0",
        "googlenet",       "efficientnet_v2_s", "inception_v2",
        "inception_v3",    "mobilenet_v2",      "mobilenet_v3_large",
        "resnet18",        "resnet50",          "resnet9",
        "resnext50_32x4d", "squeezenet1_1",     "vgg16_bn",
        "wide_resnet50_2"};

    if (getenv("DDP_LONG"))
        return strcmp(name, "mlp") != 0;
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        if (strcmp(name, usual[i]) == 0)
            return true;
    return false;
}

static void test_models(void)
{
    const char *name;

    for (int i = 0; (name = ddp_model_name(i)); i++) {
        ddp_chain_t *m;

        if (!is_tested(name))
            continue;
        if (!(m = ddp_model_new(name, NULL)))
            bail_out("%s", ddp_errmsg());
        for (int type = DDP_F32; type <= DDP_F16; type++) {
            test_graph(name, m, DDP__PULL, type);
            test_graph(name, m, DDP__INFER, type);
        }
        ddp_chain_free(m);
    }
}

/* ---- shapes ------------------------------------------------------------- */

struct conv_case {
    const char *what;
    struct ddp_shape x;
    int out;
    struct ddp__conv k;
};

static const struct conv_case cases[] = {
    {"images of 3 channels",
     {224, 224, 3},
     64,
     {7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1, false, DDP_IDENTITY, 0, 0, 0}},
    {"images of 3 channels and 5 of zeros",
     {224, 224, 8},
     64,
     {7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 1, false, DDP_IDENTITY, 3, 0, 0}},
    {"1x1",
     {14, 14, 256},
     512,
     {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, false, DDP_IDENTITY, 0, 0, 0}},
    {"1x1, stride 2",
     {56, 56, 256},
     512,
     {1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 1, false, DDP_IDENTITY, 0, 0, 0}},
    {"bias and relu",
     {56, 56, 64},
     64,
     {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, true, DDP_RELU, 0, 0, 0}},
    {"bias and sigmoid",
     {1, 1, 64},
     16,
     {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, true, DDP_SIGMOID, 0, 0, 0}},
    {"32 groups",
     {56, 56, 128},
     128,
     {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 32, false, DDP_IDENTITY, 0, 0, 0}},
    {"depthwise, stride 2",
     {28, 28, 256},
     256,
     {3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 256, false, DDP_IDENTITY, 0, 0, 0}},
    {"depthwise, 5x5",
     {14, 14, 96},
     96,
     {5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 96, false, DDP_IDENTITY, 0, 0, 0}},
    {"dilation 2",
     {28, 28, 64},
     64,
     {3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 1, false, DDP_IDENTITY, 0, 0, 0}},
    {"padding at the end only",
     {112, 112, 24},
     96,
     {3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1, false, DDP_IDENTITY, 0, 0, 0}},
    {"1x7",
     {17, 17, 128},
     128,
     {1, 7, 1, 1, 1, 1, 0, 3, 0, 3, 1, false, DDP_IDENTITY, 0, 0, 0}},
    {"odd channels",
     {9, 9, 5},
     7,
     {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, true, DDP_IDENTITY, 0, 0, 0}},
    {"a single pixel",
     {1, 1, 512},
     10,
     {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, true, DDP_IDENTITY, 0, 0, 0}},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static int extent(int in, int before, int after, int kernel, int dilation,
                  int stride)
{
    return (in + before + after - dilation * (kernel - 1) - 1) / stride + 1;
}

static struct ddp__view activation(enum ddp_dtype type, struct ddp_shape s)
{
    return (struct ddp__view){.type = type, .per_sample = true, .shape = s};
}

static struct ddp__call call_of(const struct conv_case *s, enum ddp__op op,
                                enum ddp_dtype type, int cap)
{
    const struct ddp__conv *k = &s->k;
    struct ddp_shape y = {
        extent(s->x.h, k->top, k->bottom, k->kh, k->dh, k->sh),
        extent(s->x.w, k->left, k->right, k->kw, k->dw, k->sw), s->out};
    struct ddp__view vx = activation(type, s->x), vy = activation(type, y);
    struct ddp__view w = {.type = DDP_F32, .shape = {1, 1, 1}};
    struct ddp__xwy at = ddp__op_xwy(op);
    struct ddp__call c = {.op = op, .cap = cap, .buffers = 3, .conv = *k};

    c.buf[at.x] = vx;
    c.buf[at.w] = w;
    c.buf[at.y] = vy;
    return c;
}

static void test_case(const struct conv_case *s, struct device *d,
                      enum ddp_dtype type)
{
    static const enum ddp__op ops[] = {DDP__OP_CONV_FWD, DDP__OP_CONV_BWD_W,
                                       DDP__OP_CONV_BWD_X};
    struct outcome o = {0, 0, 0, 0};

    if (aim(d, false) < 0)
        bail_out("%s", ddp_errmsg());
    for (int cap = 1; cap <= 64; cap += 63)
        for (int i = 0; i < (s->k.in ? 2 : 3); i++) {
            struct ddp__call c = call_of(s, ops[i], type, cap);

            try(&c, &o);
        }
    ok(o.failed == 0, "%s, %s, %s: 1 and 64 samples", s->what, type_names[type],
       d->name);
}

static void test_cases(void)
{
    for (int i = 0; i < CASES; i++)
        for (int d = 0; d < DEVICES; d++) {
            test_case(&cases[i], &devices[d], DDP_F32);
            test_case(&cases[i], &devices[d], half_of(&devices[d]));
        }
}

/* ---- masks --------------------------------------------------------------- */

/* Both directions of batch norm with residual, relu and mask, compiled. */
static void test_mask(struct device *d, enum ddp_dtype type)
{
    static const enum ddp__op ops[] = {DDP__OP_BN_FWD, DDP__OP_BN_BWD};
    struct ddp__view x = activation(type, (struct ddp_shape){14, 14, 256});
    bool fits = aim(d, false) == 0;
    int budget = have_driver() ? 1 : 0;

    for (int i = 0; i < 2 && fits; i++) {
        struct ddp__call c = {.op = ops[i],
                              .cap = 32,
                              .buf = {x, x, x, x, x, x, x, x},
                              .bn = {1e-5f, DDP_RELU, true, true}};
        void *plan = NULL;
        struct ddp__cudnn_plan *dnn;

        ddp__cudnn_targets[0].to_compile = budget;
        fits = ddp__cuda_bn_prepare(&c, &plan) == 0 &&
               (dnn = ((struct ddp__cuda_plan *)plan)->variant->dnn) &&
               dnn->believed == !budget;
        ddp__cuda_plan_free(plan);
    }
    ok(fits, "batch norm with a mask, %s, %s: both directions%s",
       type_names[type], d->name, budget ? ", compiled" : "");
}

static void test_masks(void)
{
    for (int i = 0; i < DEVICES && !is_old(&devices[i]); i++) {
        test_mask(&devices[i], DDP_F32);
        test_mask(&devices[i], half_of(&devices[i]));
    }
    test_mask(&devices[1], DDP_F16);
}

/* ---- choices ------------------------------------------------------------ */

static struct ddp__cuda_plan *prepared(const struct ddp__call *c)
{
    void *plan = NULL;

    if (ddp__cuda_conv_prepare(c, &plan) < 0)
        bail_out("%s", ddp_errmsg());
    return plan;
}

/* f32 is multiplied as f32 unless the program asks for TF32. */
static void test_strict(void)
{
    struct ddp__call c = call_of(&cases[4], DDP__OP_CONV_FWD, DDP_F32, 32);
    struct ddp__cuda_plan *p;

    for (int tf32 = 0; tf32 < 2; tf32++) {
        if (aim(&devices[1], tf32) < 0)
            bail_out("%s", ddp_errmsg());
        p = prepared(&c);
        ok(p->variant->dnn->tensor_cores == tf32, "f32 %s tensor cores",
           tf32 ? "as TF32 uses" : "does not use");
        ddp__cuda_plan_free(p);
    }
}

/* By stopwatch, if there is something to measure. */
static void test_tune(void)
{
    struct ddp__call c = call_of(&cases[2], DDP__OP_CONV_FWD, DDP_BF16, 32);
    struct ddp__cuda_plan *p;

    if (aim(&devices[1], false) < 0)
        bail_out("%s", ddp_errmsg());
    ddp__cudnn_targets[0].fast = true;
    p = prepared(&c);
    ok(p->variant->dnn != NULL,
       "without a GPU nothing is measured, but chosen");
    ddp__cuda_plan_free(p);
}

/* A plan is for one worker of one GPU: others have it once more. */
static void test_several(void)
{
    struct ddp__call c = call_of(&cases[4], DDP__OP_CONV_FWD, DDP_BF16, 32);
    struct ddp__cuda_plan *p;
    struct ddp__cudnn_plan *dnn;
    struct ddp__cuda_worker first = {.device = 0},
                            second = {.device = 0, .number = 1},
                            far = {.device = 3, .number = 5};
    int64_t size = -1, n = 0;

    if (aim(&devices[1], false) < 0)
        bail_out("%s", ddp_errmsg());
    p = prepared(&c);
    dnn = p->variant->dnn;
    ddp__cudnn_plans_for(&first);
    ok(!dnn->copy[0] && ddp__cudnn_plan_for(dnn, &first) == dnn->desc,
       "the first worker of the GPU that a plan was made for runs it");
    ddp__cudnn_plans_for(&second);
    ok(dnn->copy[1] && dnn->copy[1] != dnn->desc &&
           ddp__cudnn_plan_for(dnn, &second) == dnn->copy[1],
       "another of this GPU has a plan of its own");
    ddp__cudnn_plans_for(&far);
    ok(dnn->copy[5] && dnn->copy[5] != dnn->desc && !dnn->shared &&
           ddp__cudnn_plan_for(dnn, &far) == dnn->copy[5],
       "so has one of another GPU");
    cudnnBackendGetAttribute(dnn->copy[5],
                             CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                             CUDNN_TYPE_INT64, 1, &n, &size);
    is_int(size, (int64_t)dnn->workspace, "with as much workspace");
    ddp__cuda_plan_free(p);
}

/* The shorter sub-batches of a step and of an epoch. */
static void test_fewer(void)
{
    struct ddp__call c = call_of(&cases[4], DDP__OP_CONV_FWD, DDP_BF16, 32);
    struct ddp__cuda_variant *v;
    struct ddp__cuda_plan *p;

    c.fewer[1] = 7;
    if (aim(&devices[1], false) < 0)
        bail_out("%s", ddp_errmsg());
    p = prepared(&c);
    v = p->variant;
    ok(v->n == 32 && v->dnn && v->next && v->next->n == 7 && v->next->dnn &&
           v->next->dnn != v->dnn && !v->next->next,
       "a call has plans for 32 samples and for 7 before it runs");
    ddp__cuda_plan_free(p);
}

/* ---- many at a time ----------------------------------------------------- */

static int list_calls(const ddp_graph_t *g, const struct ddp__call **call)
{
    int n = 0;

    for (int i = 0; i < g->nodes; i++)
        if (is_ours(g->node[i]->call.op))
            call[n++] = &g->node[i]->call;
    return n;
}

/* All plans of a model by four threads, then once more by prepare. */
static void test_warm(void)
{
    ddp_chain_t *m = ddp_model_new("resnet18", NULL);
    ddp_graph_t *g = m ? build(m, DDP__PULL, DDP_BF16, 64) : NULL;
    const struct ddp__call **call;
    struct ddp__cudnn_count n;
    struct outcome o;

    if (!g || !(call = calloc((size_t)g->nodes, sizeof(*call))) ||
        aim(&devices[1], false) < 0)
        bail_out("%s", ddp_errmsg());
    ddp__cudnn_plans_free();
    ddp__cuda_plans_warm(call, list_calls(g, call), 4);
    n = ddp__cudnn_plans_count();
    ok(n.plans > 0 && n.failed == 0, "%d plans made by four threads", n.plans);
    o = try_graph(g, &devices[1], false);
    ok(o.failed == 0 && ddp__cudnn_plans_count().plans == n.plans,
       "the model's %d calls need no other", o.calls);
    free(call);
    ddp__graph_free(g);
    ddp_chain_free(m);
}

/* ---- files -------------------------------------------------------------- */

static char folder[4096], a_file[4096];

static int note_file(const char *path, const struct stat *s, int what,
                     struct FTW *f)
{
    (void)s;
    (void)f;
    if (what == FTW_F)
        snprintf(a_file, sizeof(a_file), "%s", path);
    return 0;
}

static void make_folder(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%s/ddp-plans-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        bail_out("no folder %s", folder);
    setenv("XDG_CACHE_HOME", folder, 1);
}

/* A call's plan as a new process would have it: from disk or built. */
static bool from_disk(const struct ddp__call *c)
{
    struct ddp__cuda_plan *p;
    bool loaded;

    ddp__cudnn_plans_free();
    p = prepared(c);
    loaded = p->variant->dnn->loaded;
    ddp__cuda_plan_free(p);
    return loaded;
}

static void test_files(void)
{
    struct ddp__call c = call_of(&cases[4], DDP__OP_CONV_FWD, DDP_BF16, 8);

    make_folder();
    if (aim(&devices[1], false) < 0)
        bail_out("%s", ddp_errmsg());
    ok(!from_disk(&c), "a plan is built");
    ok(from_disk(&c), "the next time it comes from disk");
    nftw(folder, note_file, 8, FTW_PHYS);
    ok(strstr(a_file, ".plan") && strlen(strstr(a_file, ".plan")) == 5,
       "the file has its last name");
    is_int(truncate(a_file, 700), 0, "the file is cut off");
    ok(!from_disk(&c), "and not believed");
    ok(from_disk(&c), "but written again");
    if (aim(&devices[0], false) < 0)
        bail_out("%s", ddp_errmsg());
    ok(!from_disk(&c), "another device has another plan");
    c.cap = 9;
    ok(!from_disk(&c), "so has another number of samples");
    remove_tree(folder);
}

/* A checkpoint keeps this text: bits depend on both. */
static void test_switches(void)
{
    unsetenv("DDP_TF32");
    setenv("DDP_TUNE", "0", 1);
    is_str(ddp__cudnn_switches(), "", "nothing is switched on");
    setenv("DDP_TF32", "1", 1);
    is_str(ddp__cudnn_switches(), ", TF32", "TF32 is");
    setenv("DDP_TUNE", "1", 1);
    is_str(ddp__cudnn_switches(), ", TF32, tuned", "so is tuning");
    unsetenv("DDP_TF32");
    is_str(ddp__cudnn_switches(), ", tuned", "only tuning is");
    unsetenv("DDP_TUNE");
}

int main(void)
{
    struct ddp__cudnn_count n;

    unsetenv("XDG_CACHE_HOME"); /* nothing on disk before test_files() */
    unsetenv("HOME");
    set_budget();
    test_cases();
    test_masks();
    test_models();
    n = ddp__cudnn_plans_count();
    diag("%d plans, %d of them with an engine compiled at run time, of which "
         "%d were",
         n.plans, n.runtime, n.runtime - n.believed);
    test_strict();
    test_tune();
    test_several();
    test_fewer();
    test_warm();
    test_files();
    test_switches();
    ddp__cudnn_plans_free();
    ddp__cudnn_targets_free();
    return done_testing();
}
#endif
