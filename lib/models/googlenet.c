/* googlenet.c - the first Inception network, with batch norm as torchvision's
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Szegedy et al., "Going deeper with convolutions", 2014, table 1.
 *          torchvision's third branch has 3x3 convolutions in place of 5x5.
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

static const struct ddp_weight_init normal = {.std = 0.01f};

static ddp_layer_t *conv(const char *name, int in, int out, int kernel,
                         int stride)
{
    return ddp_layer_set_name(
        ddp__unit_new(
            in, out, kernel,
            &(struct ddp__unit){.conv = {DDP__CONV_DEFAULTS, .stride = stride,
                                         .pad = kernel / 2, .init = normal},
                                .norm = {DDP__NORM_DEFAULTS, .eps = 1e-3f},
                                .act = DDP_RELU,
                                .named = true}),
        name);
}

static ddp_layer_t *pool(int kernel)
{
    return ddp_max_pool_new(
        kernel, &(struct ddp_pool_options){DDP__POOL_DEFAULTS, .stride = 2,
                                           .ceil_mode = true});
}

static ddp_layer_t *dense(const char *name, int in, int out, int pixels)
{
    struct ddp_dense_options o = {DDP__DENSE_DEFAULTS, .pixels = pixels,
                                  .init = normal};

    return ddp_layer_set_name(ddp_dense_new(in, out, &o), name);
}

/* Channels of 1x1; of 3x3 and before it; of "5x5" and before it; of the pool's
 * projection. */
struct inception {
    const char *name;
    int in, one, before3, three, before5, five, pool;
};

static ddp_layer_t *inception(const struct inception *m)
{
    static const struct ddp_pool_options same = {
        DDP__POOL_DEFAULTS, .stride = 1, .pad = 1, .ceil_mode = true};

    return ddp_layer_set_name(
        ddp_parallel_new(
            DDP_CONCAT, conv("branch1", m->in, m->one, 1, 1),
            ddp_layer_set_name(
                ddp_chain_new(conv(NULL, m->in, m->before3, 1, 1),
                              conv(NULL, m->before3, m->three, 3, 1), DDP_END),
                "branch2"),
            ddp_layer_set_name(
                ddp_chain_new(conv(NULL, m->in, m->before5, 1, 1),
                              conv(NULL, m->before5, m->five, 3, 1), DDP_END),
                "branch3"),
            ddp_layer_set_name(ddp_chain_new(ddp_max_pool_new(3, &same),
                                             conv(NULL, m->in, m->pool, 1, 1),
                                             DDP_END),
                               "branch4"),
            DDP_END),
        m->name);
}

static ddp_layer_t *aux(const char *name, int in, int classes, float dropout)
{
    return ddp_layer_set_name(
        ddp_aux_new(
            ddp_layer_set_name(
                ddp_chain_new(ddp_adaptive_mean_pool_new(4, 4),
                              conv("conv", in, 128, 1, 1), ddp_flatten_new(),
                              dense("fc1", 128 * 4 * 4, 1024, 4 * 4),
                              ddp_relu_new(), ddp_dropout_new(dropout),
                              dense("fc2", 1024, classes, 1), DDP_END),
                ""),
            0.3f),
        name);
}

static void add_modules(ddp_chain_t *c, const struct inception *m, int n)
{
    for (int i = 0; i < n; i++)
        ddp_chain_add(c, inception(&m[i]));
}

/* In the order of the paper's table 1: two auxiliary classifiers read the
 * outputs of modules 4a and 4d. */
static ddp_chain_t *googlenet_new(const struct ddp_model_options *o,
                                  const void *kind)
{
    static const struct inception m[] = {
        {"inception3a", 192, 64, 96, 128, 16, 32, 32},
        {"inception3b", 256, 128, 128, 192, 32, 96, 64},
        {"inception4a", 480, 192, 96, 208, 16, 48, 64},
        {"inception4b", 512, 160, 112, 224, 24, 64, 64},
        {"inception4c", 512, 128, 128, 256, 24, 64, 64},
        {"inception4d", 512, 112, 144, 288, 32, 64, 64},
        {"inception4e", 528, 256, 160, 320, 32, 128, 128},
        {"inception5a", 832, 256, 160, 320, 32, 128, 128},
        {"inception5b", 832, 384, 192, 384, 48, 128, 128},
    };
    ddp_chain_t *c =
        ddp_chain_new(conv("conv1", o->in_channels, 64, 7, 2), pool(3),
                      conv("conv2", 64, 64, 1, 1), conv("conv3", 64, 192, 3, 1),
                      pool(3), DDP_END);

    (void)kind;
    add_modules(c, m, 2);
    ddp_chain_add(c, pool(3));
    add_modules(c, m + 2, 1);
    if (!o->no_aux)
        ddp_chain_add(
            c, aux("aux1", 512, o->classes, ddp__rate(o->dropout, 0.7f)));
    add_modules(c, m + 3, 3);
    if (!o->no_aux)
        ddp_chain_add(
            c, aux("aux2", 528, o->classes, ddp__rate(o->dropout, 0.7f)));
    add_modules(c, m + 6, 1);
    ddp_chain_add(c, pool(2));
    add_modules(c, m + 7, 2);
    ddp_chain_add(c, ddp_global_mean_pool_new());
    ddp_chain_add(c, ddp_dropout_new(ddp__rate(o->dropout, 0.2f)));
    ddp_chain_add(c, dense("fc", 1024, o->classes, 1));
    return ddp__chain_done(c);
}

const struct ddp__model ddp__googlenet_models[] = {
    {"googlenet", googlenet_new, NULL, {224, 256, DDP_BILINEAR, true}},
    {0},
};
