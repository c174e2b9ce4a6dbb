/* squeezenet.c - few channels between wide layers, and no dense layer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer
 *          parameters", 2016, table 1; 1.1 is the authors' later release, with
 *          a smaller first layer and earlier pools.
 */
#include "config.h"

#include <math.h>

#include "models/models.h"
#include "models/parts.h"

enum { FIRES = 8 };

struct squeezenet {
    int kernel, out;         /* of the first convolution */
    bool pool_before[FIRES]; /* the fires that follow a pool */
};

/* Kaiming uniform by fan in. */
static ddp_layer_t *conv(const char *name, int in, int out, int kernel)
{
    struct ddp_conv_options o = {
        DDP__CONV_DEFAULTS, .pad = kernel / 2,
        .init = {.bound = sqrtf(6 / (float)(in * kernel * kernel)),
                 .zero_bias = true}};

    return ddp_layer_set_name(ddp_conv_new(in, out, kernel, &o), name);
}

/* 1x1 to few channels; then 1x1 and 3x3 in parallel. */
static ddp_layer_t *fire(int in, int squeezed, int out)
{
    ddp_layer_t *expand = ddp_parallel_new(
        DDP_CONCAT,
        ddp_layer_set_name(ddp_chain_new(conv("expand1x1", squeezed, out, 1),
                                         ddp_relu_new(), DDP_END),
                           ""),
        ddp_layer_set_name(ddp_chain_new(conv("expand3x3", squeezed, out, 3),
                                         ddp_relu_new(), DDP_END),
                           ""),
        DDP_END);

    return ddp_chain_new(conv("squeeze", in, squeezed, 1), ddp_relu_new(),
                         ddp_layer_set_name(expand, ""), DDP_END);
}

static ddp_layer_t *pool(void)
{
    return ddp_max_pool_new(3, &(struct ddp_pool_options){DDP__POOL_DEFAULTS,
                                                          .stride = 2,
                                                          .ceil_mode = true});
}

static ddp_layer_t *features(const struct squeezenet *s, int in)
{
    static const int squeezed[FIRES] = {16, 16, 32, 32, 48, 48, 64, 64};
    ddp_chain_t *c = ddp_chain_new(DDP_END);
    struct ddp_conv_options first = {
        DDP__CONV_DEFAULTS, .stride = 2,
        .init = {.bound = sqrtf(6 / (float)(in * s->kernel * s->kernel)),
                 .zero_bias = true}};

    ddp_chain_add(c, ddp_conv_new(in, s->out, s->kernel, &first));
    ddp_chain_add(c, ddp_relu_new());
    in = s->out;
    for (int i = 0; i < FIRES; i++) {
        if (s->pool_before[i])
            ddp_chain_add(c, pool());
        ddp_chain_add(c, fire(in, squeezed[i], 4 * squeezed[i]));
        in = 8 * squeezed[i];
    }
    return ddp_layer_set_name(ddp__chain_done(c), "features");
}

static ddp_chain_t *squeezenet_new(const struct ddp_model_options *o,
                                   const void *kind)
{
    struct ddp_conv_options last = {DDP__CONV_DEFAULTS,
                                    .init = {.std = 0.01f, .zero_bias = true}};

    return ddp_chain_new(
        features(kind, o->in_channels),
        ddp_layer_set_name(
            ddp_chain_new(ddp_dropout_new(ddp__rate(o->dropout, 0.5f)),
                          ddp_conv_new(512, o->classes, 1, &last),
                          ddp_relu_new(), ddp_global_mean_pool_new(), DDP_END),
            "classifier"),
        DDP_END);
}

static const struct squeezenet squeezenet1_0 = {
    7, 96, {true, false, false, true, false, false, false, true}};
static const struct squeezenet squeezenet1_1 = {
    3, 64, {true, false, true, false, true, false, false, false}};

const struct ddp__model ddp__squeezenet_models[] = {
    {"squeezenet1_0", squeezenet_new, &squeezenet1_0, {0}},
    {"squeezenet1_1", squeezenet_new, &squeezenet1_1, {0}},
    {0},
};
