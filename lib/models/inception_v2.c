/* inception_v2.c - Inception with batch norm, the network that introduced it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Ioffe and Szegedy, "Batch normalization", 2015, figure 5: two 3x3
 *          convolutions in place of 5x5, strides in modules, a separable first
 *          convolution.  The figure's projections of 4c and 4d, 128, do not
 *          give its own sizes; 96, as its authors' later release has, do.
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

static ddp_layer_t *conv(const char *name, int in, int out, int kernel,
                         int stride)
{
    return ddp_layer_set_name(
        ddp__unit_new(
            in, out, kernel,
            &(struct ddp__unit){.conv = {DDP__CONV_DEFAULTS, .stride = stride,
                                         .pad = kernel / 2},
                                .norm = {DDP__NORM_DEFAULTS, .eps = 1e-3f},
                                .act = DDP_RELU,
                                .named = true}),
        name);
}

/* 7x7 on each channel alone, to 8 of each; then 1x1. */
static ddp_layer_t *first_conv(int in)
{
    struct ddp_conv_options o = {DDP__CONV_DEFAULTS, .stride = 2, .pad = 3,
                                 .groups = in, .no_bias = true};

    return ddp_layer_set_name(
        ddp_chain_new(
            ddp_layer_set_name(ddp_conv_new(in, 8 * in, 7, &o), "depthwise"),
            ddp_layer_set_name(conv(NULL, 8 * in, 64, 1, 1), ""), DDP_END),
        "conv1");
}

static ddp_layer_t *pool(bool max, int stride)
{
    struct ddp_pool_options o = {DDP__POOL_DEFAULTS, .stride = stride,
                                 .pad = 1};

    return max ? ddp_max_pool_new(3, &o) : ddp_mean_pool_new(3, &o);
}

/* Channels of 1x1; of 3x3 and before it; of the double 3x3 and before it; of
 * the pool's projection.  Without 1x1 the module has stride 2, and its pool is
 * not projected. */
struct inception {
    const char *name;
    int in, one, before3, three, before33, double33, pool;
    bool max;
};

static ddp_layer_t *branch(const char *name, const struct inception *m,
                           bool twice)
{
    int stride = m->one ? 1 : 2, out = twice ? m->double33 : m->three;
    ddp_chain_t *c = ddp_chain_new(
        conv(NULL, m->in, twice ? m->before33 : m->before3, 1, 1), DDP_END);

    if (!twice) {
        ddp_chain_add(c, conv(NULL, m->before3, out, 3, stride));
    } else {
        ddp_chain_add(c, conv(NULL, m->before33, out, 3, 1));
        ddp_chain_add(c, conv(NULL, out, out, 3, stride));
    }
    return ddp_layer_set_name(ddp__chain_done(c), name);
}

static ddp_layer_t *inception(const struct inception *m)
{
    ddp_layer_t *three = branch("branch2", m, false);
    ddp_layer_t *twice = branch("branch3", m, true), *l;

    if (!m->one)
        l = ddp_parallel_new(DDP_CONCAT, three, twice, pool(true, 2), DDP_END);
    else
        l = ddp_parallel_new(
            DDP_CONCAT, conv("branch1", m->in, m->one, 1, 1), three, twice,
            ddp_layer_set_name(ddp_chain_new(pool(m->max, 1),
                                             conv(NULL, m->in, m->pool, 1, 1),
                                             DDP_END),
                               "branch4"),
            DDP_END);
    return ddp_layer_set_name(l, m->name);
}

/* The table is the paper's; modules without a 1x1 branch have stride 2. */
static ddp_chain_t *inception_v2_new(const struct ddp_model_options *o,
                                     const void *kind)
{
    static const struct inception m[] = {
        {"inception3a", 192, 64, 64, 64, 64, 96, 32, false},
        {"inception3b", 256, 64, 64, 96, 64, 96, 64, false},
        {"inception3c", 320, 0, 128, 160, 64, 96, 0, true},
        {"inception4a", 576, 224, 64, 96, 96, 128, 128, false},
        {"inception4b", 576, 192, 96, 128, 96, 128, 128, false},
        {"inception4c", 576, 160, 128, 160, 128, 160, 96, false},
        {"inception4d", 576, 96, 128, 192, 160, 192, 96, false},
        {"inception4e", 576, 0, 128, 192, 192, 256, 0, true},
        {"inception5a", 1024, 352, 192, 320, 160, 224, 128, false},
        {"inception5b", 1024, 352, 192, 320, 192, 224, 128, true},
    };
    ddp_chain_t *c = ddp_chain_new(
        first_conv(o->in_channels), pool(true, 2), conv("conv2", 64, 64, 1, 1),
        conv("conv3", 64, 192, 3, 1), pool(true, 2), DDP_END);

    (void)kind;
    for (int i = 0; i < 10; i++)
        ddp_chain_add(c, inception(&m[i]));
    ddp_chain_add(c, ddp_global_mean_pool_new());
    ddp_chain_add(
        c, ddp_layer_set_name(ddp_dense_new(1024, o->classes, NULL), "fc"));
    return ddp__chain_done(c);
}

const struct ddp__model ddp__inception_v2_models[] = {
    {"inception_v2", inception_v2_new, NULL, {0}},
    {0},
};
