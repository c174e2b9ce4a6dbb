/* test_bad_layers.c - what layers and chains refuse, and with which message
 *
 * Nothing here may crash, leak or print; a message names the layer and what
 * is wrong, and the first of several failures is the one that is reported.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "defaults.h"
#include "runtime/context.h"
#include "tap.h"

static ddp_t *ddp;

#define CHAIN(...) ddp_chain_new(__VA_ARGS__, DDP_END)
#define CONV(in, out, k, ...)                                                  \
    ddp_conv_new(in, out, k,                                                   \
                 &(struct ddp_conv_options){CONV_DEFAULTS, __VA_ARGS__})
#define DENSE(in, out, ...)                                                    \
    ddp_dense_new(in, out,                                                     \
                  &(struct ddp_dense_options){DENSE_DEFAULTS, __VA_ARGS__})
#define BN(...)                                                                \
    ddp_batch_norm_new(                                                        \
        4, &(struct ddp_batch_norm_options){NORM_DEFAULTS, __VA_ARGS__})
#define MAX_POOL(k, ...)                                                       \
    ddp_max_pool_new(k, &(struct ddp_pool_options){POOL_DEFAULTS, __VA_ARGS__})
#define MEAN_POOL(k, ...)                                                      \
    ddp_mean_pool_new(k, &(struct ddp_pool_options){POOL_DEFAULTS, __VA_ARGS__})

/* ---- constructors ------------------------------------------------------- */

/* Leave a message that no layer leaves, so that an old one is not taken for
 * the one of the failure looked at. */
static void forget(void)
{
    ddp_dataset_callback(NULL);
}

static void is_refused(ddp_layer_t *l, const char *says, const char *what)
{
    ok(!l && strstr(ddp_errmsg(), says), "%s: %s", what,
       l ? "accepted" : ddp_errmsg());
    ddp_layer_free(l);
}

#define REFUSED(says, ...)                                                     \
    do {                                                                       \
        forget();                                                              \
        is_refused(__VA_ARGS__, says, #__VA_ARGS__);                           \
    } while (0)

static void test_dense(void)
{
    REFUSED("dense", ddp_dense_new(0, 3, NULL));
    REFUSED("dense", ddp_dense_new(3, 0, NULL));
    REFUSED("dense", ddp_dense_new(-1, 3, NULL));
    REFUSED("dense", ddp_dense_new(3, INT_MIN, NULL));
    REFUSED("pixels", DENSE(12, 3, .pixels = 5));
    REFUSED("pixels", DENSE(12, 3, .pixels = 0));
    REFUSED("pixels", DENSE(12, 3, .pixels = -4));
    REFUSED("dense", DENSE(12, 3, .init = {.std = -1}));
    REFUSED("dense", DENSE(12, 3, .init = {.bound = NAN}));
    REFUSED("dense", DENSE(12, 3, .init = {.std = 1, .bound = 1}));
}

static void test_conv(void)
{
    REFUSED("conv", ddp_conv_new(0, 3, 3, NULL));
    REFUSED("conv", ddp_conv_new(3, -3, 3, NULL));
    REFUSED("conv", ddp_conv_new(3, 3, 0, NULL));
    REFUSED("conv", CONV(3, 3, 3, .kernel_w = -2));
    REFUSED("conv", CONV(3, 3, 3, .stride = -1));
    REFUSED("conv", CONV(3, 3, 3, .stride_w = -2));
    REFUSED("stride 0", CONV(3, 3, 3, .stride = 0));
    REFUSED("dilation 0", CONV(3, 3, 3, .dilation = 0));
    REFUSED("conv", CONV(3, 3, 3, .dilation = -2));
    REFUSED("conv", CONV(3, 3, 3, .pad = -1));
    REFUSED("conv", CONV(3, 3, 3, .pad_w = -2));
    REFUSED("conv", CONV(3, 3, 3, .pads = {0, 0, 0, -2}));
    REFUSED("0 groups", CONV(4, 4, 3, .groups = 0));
    REFUSED("conv", CONV(4, 4, 3, .groups = -1));
    REFUSED("groups", CONV(4, 6, 3, .groups = 4));
    REFUSED("groups", CONV(6, 4, 3, .groups = 4));
    REFUSED("conv", CONV(4, 4, 3, .init = {.std = -1}));
}

static void test_others(void)
{
    REFUSED("batch_norm", ddp_batch_norm_new(0, NULL));
    REFUSED("eps 0", BN(.eps = 0));
    REFUSED("batch_norm", BN(.eps = -1e-5f));
    REFUSED("batch_norm", BN(.eps = NAN));
    REFUSED("batch_norm", BN(.momentum = -0.1f));
    REFUSED("batch_norm", BN(.momentum = 1.5f));
    REFUSED("batch_norm", BN(.momentum = NAN));
    REFUSED("activation", ddp_act_new(DDP_ACT_COUNT));
    REFUSED("activation", ddp_act_new((enum ddp_act) - 1));
    REFUSED("aux: weight 0", ddp_aux_new(ddp_relu_new(), 0));
    REFUSED("aux", ddp_aux_new(ddp_relu_new(), 1.5f));
    REFUSED("aux", ddp_aux_new(ddp_relu_new(), NAN));
    REFUSED("dense: 0", ddp_aux_new(ddp_dense_new(0, 1, NULL), 0.3f));
    REFUSED("dropout", ddp_dropout_new(-0.1f));
    REFUSED("dropout", ddp_dropout_new(1));
    REFUSED("dropout", ddp_dropout_new(NAN));
    REFUSED("stochastic_depth", ddp_stochastic_depth_new(1.5f));
}

static void test_pools(void)
{
    REFUSED("pool", ddp_max_pool_new(0, NULL));
    REFUSED("pool", ddp_mean_pool_new(-1, NULL));
    REFUSED("pool", MAX_POOL(3, .kernel_w = -2));
    REFUSED("stride 0", MAX_POOL(3, .stride = 0));
    REFUSED("pool", MAX_POOL(3, .stride = -2));
    REFUSED("pool", MEAN_POOL(3, .stride_w = -2));
    REFUSED("pool", MAX_POOL(3, .pad = -1));
    REFUSED("pool", MAX_POOL(3, .pad = 2));
    REFUSED("pool", MEAN_POOL(4, .kernel_w = 2, .pad_w = 2));
    REFUSED("adaptive", ddp_adaptive_mean_pool_new(0, 1));
    REFUSED("adaptive", ddp_adaptive_mean_pool_new(1, -1));
}

static void test_models(void)
{
    int n = 0;

    REFUSED("resnet50", ddp_model_new("resnet51", NULL));
    REFUSED("mlp", ddp_model_new("", NULL));
    REFUSED("classes",
            ddp_model_new("resnet18", &(struct ddp_model_options){
                                          MODEL_DEFAULTS, .classes = -1}));
    REFUSED("width", ddp_model_new("vgg11", &(struct ddp_model_options){
                                                MODEL_DEFAULTS, .width = 32}));
    REFUSED("0 classes",
            ddp_model_new("resnet18", &(struct ddp_model_options){
                                          MODEL_DEFAULTS, .classes = 0}));
    REFUSED("DDP_MODEL_RATE",
            ddp_model_new("vgg11", &(struct ddp_model_options){
                                       MODEL_DEFAULTS, .dropout = -0.5f}));
    REFUSED("stem",
            ddp_model_new("alexnet", &(struct ddp_model_options){
                                         MODEL_DEFAULTS, .small_stem = true}));
    REFUSED("dropout",
            ddp_model_new("resnet18", &(struct ddp_model_options){
                                          MODEL_DEFAULTS, .dropout = 0.5f}));
    REFUSED("dropout",
            ddp_model_new("googlenet", &(struct ddp_model_options){
                                           MODEL_DEFAULTS, .dropout = 1.5f}));
    REFUSED(
        "stochastic depth",
        ddp_model_new("vgg11", &(struct ddp_model_options){
                                   MODEL_DEFAULTS, .stochastic_depth = 0.5f}));
    ok(ddp_model_size("inception_v3") == 299 &&
           ddp_model_size("resnet50") == 224 && ddp_model_size("none") == 0,
       "models have usual sizes");
    while (ddp_model_name(n))
        n++;
    ok(n > 0 && !ddp_model_name(-1) && !ddp_model_name(n + 1),
       "%d models have names", n);
}

/* ---- lists of layers ---------------------------------------------------- */

/* The first failure's message survives what is built around it. */
static void test_lists(void)
{
    REFUSED("dense: 0", CHAIN(ddp_dense_new(0, 1, NULL)));
    REFUSED("dense: 0",
            CHAIN(ddp_relu_new(), ddp_dense_new(0, 1, NULL), ddp_relu_new()));
    REFUSED("dense: 0", CHAIN(CHAIN(CHAIN(ddp_dense_new(0, 1, NULL)))));
    REFUSED("dense: 0", CHAIN(ddp_dense_new(0, 1, NULL), ddp_relu_new(), NULL));
    REFUSED("dense: 0", ddp_layer_set_name(ddp_dense_new(0, 1, NULL), "fc"));
    REFUSED("dense: 0", ddp_skip_new(ddp_dense_new(0, 1, NULL), DDP_END));
    REFUSED("dense: 0",
            ddp_skip_new(ddp_dense_new(0, 1, NULL), ddp_relu_new()));
    REFUSED("dense: 0",
            ddp_skip_new(ddp_relu_new(), ddp_dense_new(0, 1, NULL)));
    REFUSED("dense: 0", ddp_channel_scale_new(ddp_dense_new(0, 1, NULL)));
    REFUSED("dense: 0",
            ddp_parallel_new(DDP_ADD, ddp_relu_new(), ddp_dense_new(0, 1, NULL),
                             ddp_relu_new(), DDP_END));
    REFUSED("parallel", ddp_parallel_new(DDP_ADD, DDP_END));
    REFUSED("parallel",
            ddp_parallel_new(DDP_ADD, ddp_relu_new(), ddp_relu_new(),
                             ddp_relu_new(), ddp_relu_new(), ddp_relu_new(),
                             ddp_relu_new(), ddp_relu_new(), ddp_relu_new(),
                             ddp_relu_new(), DDP_END));
    REFUSED("parallel", ddp_parallel_new((enum ddp_join)7, ddp_relu_new(),
                                         ddp_relu_new(), DDP_END));
}

static void test_adding(void)
{
    ddp_chain_t *c = CHAIN(ddp_relu_new());
    struct ddp_param_info p;

    forget();
    ok(ddp_chain_add(c, ddp_dense_new(-5, 1, NULL)) < 0 &&
           strstr(ddp_errmsg(), "dense: -5"),
       "adding what could not be made: %s", ddp_errmsg());
    ok(ddp_chain_add(c, ddp_relu_new()) < 0 &&
           strstr(ddp_errmsg(), "dense: -5"),
       "every later add fails, with that message");
    ok(ddp_chain_param(c, 0, &p) < 0, "such a chain cannot be used");
    ddp_chain_free(c);
    forget();
    ok(ddp_chain_add(NULL, ddp_relu_new()) < 0, "adding to no chain");
    c = ddp_dense_new(1, 1, NULL);
    ok(ddp_chain_add(c, ddp_relu_new()) < 0 && strstr(ddp_errmsg(), "chain"),
       "adding to a layer that is no chain: %s", ddp_errmsg());
    ddp_chain_free(c);
    c = CHAIN(ddp_dense_new(1, 1, NULL));
    ok(ddp_chain_param(c, 0, &p) == 0 && ddp_chain_add(c, ddp_relu_new()) < 0 &&
           strstr(ddp_errmsg(), "before"),
       "adding to a chain in use: %s", ddp_errmsg());
    ddp_chain_free(c);
    ddp_chain_free(NULL);
    ddp_layer_free(NULL);
}

/* ---- shapes that do not fit --------------------------------------------- */

/* A chain refuses input of (h, w, c), forward and for a pullback. */
static void is_misfit(ddp_chain_t *c, struct ddp_shape in, const char *says,
                      const char *what)
{
    size_t len = 2 * (size_t)in.h * (size_t)in.w * (size_t)in.c;
    float *x = calloc(len, sizeof(*x));
    ddp_pullback_t *p;
    int rc;

    forget();
    rc = ddp_chain_forward(ddp, c, x, DDP_F32, in, 2, 0, x);
    ok(c && rc == DDP_ESHAPE && strstr(ddp_errmsg(), says), "%s: %s", what,
       rc ? ddp_errmsg() : "accepted");
    forget();
    p = ddp_pullback_new(ddp, c, x, in, 2, 0, NULL);
    ok(!p && strstr(ddp_errmsg(), says), "%s: no pullback either", what);
    ddp_pullback_free(p);
    ddp_chain_free(c);
    free(x);
}

#define MISFIT(says, h, w, c, ...)                                             \
    is_misfit(__VA_ARGS__, (struct ddp_shape){h, w, c}, says, #__VA_ARGS__)

static void test_shapes(void)
{
    MISFIT("conv: input has 3", 8, 8, 3, CHAIN(CONV(4, 8, 3)));
    MISFIT("conv: input has 8", 8, 8, 4, CHAIN(CONV(4, 8, 3), CONV(4, 8, 3)));
    MISFIT("conv", 8, 2, 4, CHAIN(CONV(4, 8, 3)));
    MISFIT("conv", 4, 8, 4, CHAIN(CONV(4, 8, 3, .dilation = 2)));
    MISFIT("batch_norm: input has 3", 8, 8, 3,
           CHAIN(ddp_batch_norm_new(4, NULL)));
    MISFIT("flatten", 2, 2, 3, CHAIN(ddp_dense_new(12, 2, NULL)));
    MISFIT("dense", 1, 1, 3, CHAIN(ddp_dense_new(4, 2, NULL)));
    MISFIT("dense", 1, 1, 4,
           CHAIN(ddp_dense_new(4, 2, NULL), ddp_dense_new(3, 2, NULL)));
    MISFIT("max_pool", 8, 2, 3, CHAIN(ddp_max_pool_new(3, NULL)));
    MISFIT("mean_pool", 2, 8, 3, CHAIN(ddp_mean_pool_new(3, NULL)));
    MISFIT("skip", 8, 8, 4, CHAIN(ddp_skip_new(CONV(4, 4, 3), DDP_END)));
    MISFIT("skip", 8, 8, 4, CHAIN(ddp_skip_new(CONV(4, 5, 1), DDP_END)));
    MISFIT("skip", 8, 8, 4, CHAIN(ddp_skip_new(CONV(4, 5, 1), CONV(4, 6, 1))));
    MISFIT("parallel: branch 1", 8, 8, 4,
           CHAIN(ddp_parallel_new(DDP_CONCAT, CONV(4, 2, 1), CONV(4, 2, 3),
                                  DDP_END)));
    MISFIT("parallel: branch 2", 8, 8, 4,
           CHAIN(ddp_parallel_new(DDP_ADD, CONV(4, 2, 1), CONV(4, 2, 1),
                                  CONV(4, 3, 1), DDP_END)));
    MISFIT("channel_scale", 8, 8, 4,
           CHAIN(ddp_channel_scale_new(CONV(4, 4, 1))));
    MISFIT("channel_scale", 8, 8, 4,
           CHAIN(ddp_channel_scale_new(
               CHAIN(ddp_global_mean_pool_new(), ddp_dense_new(4, 3, NULL)))));
    MISFIT("conv: input has 4", 8, 8, 4,
           CHAIN(ddp_skip_new(CHAIN(CONV(5, 4, 1)), DDP_END)));
}

/* ---- calls -------------------------------------------------------------- */

static void test_calls(void)
{
    ddp_chain_t *c = CHAIN(ddp_dense_new(2, 2, NULL));
    struct ddp_shape in = {1, 1, 2};
    float x[4] = {0}, y[4];
    ddp_pullback_t *p;

    ok(ddp_chain_forward(NULL, c, x, DDP_F32, in, 2, 0, y) < 0, "no context");
    ok(ddp_chain_forward(ddp, NULL, x, DDP_F32, in, 2, 0, y) < 0, "no chain");
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, in, 0, 0, y) < 0, "no samples");
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, in, 2, -1, y) < 0,
       "a sub-batch of -1");
    ok(ddp_chain_forward(ddp, c, x, DDP_I32, in, 2, 0, y) < 0, "integers");
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, (struct ddp_shape){1, 0, 2}, 2, 0,
                         y) < 0,
       "an empty shape");
    ok(ddp_chain_forward(ddp, c, NULL, DDP_F32, in, 2, 0, y) < 0 &&
           ddp_chain_forward(ddp, c, x, DDP_F32, in, 2, 0, NULL) < 0,
       "nowhere to read or write");
    p = ddp_pullback_new(ddp, c, x, in, 2, 0, NULL);
    ok(p && ddp_pullback_get_gradient(p, "0.weight", y, 4) < 0,
       "a gradient before the pull: %s", ddp_errmsg());
    ok(p && ddp_pullback_backward(p, NULL, NULL) < 0, "a pull without dy");
    ok(p && ddp_pullback_backward(p, x, NULL) == 0, "a pull");
    ok(p && ddp_pullback_get_gradient(p, "0.weight", y, 3) < 0 &&
           strstr(ddp_errmsg(), "0.weight"),
       "a gradient of another length: %s", ddp_errmsg());
    ok(p && ddp_pullback_get_gradient(p, "1.weight", y, 4) < 0 &&
           strstr(ddp_errmsg(), "1.weight"),
       "a gradient that is not there: %s", ddp_errmsg());
    ok(p && ddp_pullback_get_gradient(p, "0.weight", y, 4) == 0,
       "and one that is");
    ddp_pullback_free(p);
    ddp_pullback_free(NULL);
    ok(ddp_pullback_backward(NULL, x, NULL) < 0, "a pull of nothing");
    ddp_chain_free(c);
}

static void test_params(void)
{
    ddp_chain_t *c = CHAIN(CONV(2, 2, 3), ddp_batch_norm_new(2, NULL));
    struct ddp_param_info p;
    float w[36] = {0};
    uint32_t crc;

    ok(ddp_chain_param(c, -1, &p) < 0 && ddp_chain_param(c, 6, &p) < 0 &&
           ddp_chain_param(c, 5, &p) == 0,
       "parameters are numbered 0 to 5");
    ok(ddp_chain_get(c, "0.weight", w, 35) < 0 &&
           strstr(ddp_errmsg(), "0.weight"),
       "a length that is not its own: %s", ddp_errmsg());
    ok(ddp_chain_set(c, "0.scale", w, 36) < 0 &&
           strstr(ddp_errmsg(), "0.scale"),
       "a name that is not there: %s", ddp_errmsg());
    ok(ddp_chain_param(NULL, 0, &p) < 0 && ddp_chain_get(NULL, "", w, 1) < 0 &&
           ddp_chain_init(NULL, 1) < 0 && ddp_chain_checksum(NULL, &crc) < 0,
       "no chain");
    ddp_chain_free(c);
}

/* A program may check once, after several calls. */
static void test_kept_reason(void)
{
    struct ddp_param_info info;
    char reason[256];
    float w;

    ok(!ddp_dense_new(0, 3, NULL), "a layer that is not built");
    snprintf(reason, sizeof(reason), "built: %s", ddp_errmsg());
    ok(ddp_chain_init(NULL, 1) == DDP_EINVAL && strstr(ddp_errmsg(), reason),
       "the call after it reports the reason too: %s", ddp_errmsg());
    ok(ddp_chain_get(NULL, "0.bias", &w, 1) == DDP_EINVAL &&
           ddp_chain_param(NULL, 0, &info) == DDP_EINVAL,
       "with the code that ddp_errcode() has");
}

/* One value per channel (a last sub-batch of one sample, at the end of a
 * network) has no variance: it is normalised to 0, and nothing becomes NaN. */
static void test_one_value(void)
{
    ddp_chain_t *c = CHAIN(ddp_batch_norm_new(3, NULL));
    float x[3] = {1, -2, 3}, bias[3] = {5, 6, 7}, y[3] = {0}, dx[3] = {1, 1, 1};
    ddp_pullback_t *p;

    ddp_chain_init(c, 1);
    ddp_chain_set(c, "0.bias", bias, 3);
    p = ddp_pullback_new(ddp, c, x, (struct ddp_shape){1, 1, 3}, 1, 0, y);
    ok(p && memcmp(y, bias, sizeof(y)) == 0 &&
           ddp_pullback_backward(p, x, dx) == 0 && dx[0] == 0 && dx[1] == 0 &&
           dx[2] == 0,
       "batch norm of one value per channel gives the bias, and no gradient");
    ddp_pullback_free(p);
    ddp_chain_free(c);
}

int main(void)
{
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    test_dense();
    test_conv();
    test_others();
    test_pools();
    test_models();
    test_lists();
    test_adding();
    test_shapes();
    test_calls();
    test_params();
    test_kept_reason();
    test_one_value();
    ddp_finish(ddp);
    return done_testing();
}
