/* densenet.c - every layer reads the outputs of all layers before it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Huang et al., "Densely connected convolutional networks", 2016,
 *          table 1: with bottlenecks, and halved between blocks.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "models/models.h"
#include "models/parts.h"

struct densenet {
    int growth; /* channels that a layer adds */
    int layers[4];
    int first; /* channels of the first convolution */
};

static ddp_layer_t *numbered(ddp_layer_t *l, const char *name, int i)
{
    char text[32];

    snprintf(text, sizeof(text), "%s%d", name, i);
    return ddp_layer_set_name(l, text);
}

/* Kaiming normal by fan in. */
static ddp_layer_t *conv(const char *name, int in, int out, int kernel,
                         int stride)
{
    struct ddp_conv_options o = {
        DDP__CONV_DEFAULTS, .stride = stride, .pad = kernel / 2,
        .no_bias = true,
        .init = {.std = sqrtf(2 / (float)(in * kernel * kernel))}};

    return ddp_layer_set_name(ddp_conv_new(in, out, kernel, &o), name);
}

static ddp_layer_t *norm(const char *name, int channels)
{
    return ddp_layer_set_name(ddp_batch_norm_new(channels, NULL), name);
}

/* x and the layer's output, concatenated. */
static ddp_layer_t *layer(int in, int growth, float dropout)
{
    ddp_layer_t *made = ddp_chain_new(norm("norm1", in), ddp_relu_new(),
                                      conv("conv1", in, 4 * growth, 1, 1),
                                      norm("norm2", 4 * growth), ddp_relu_new(),
                                      conv("conv2", 4 * growth, growth, 3, 1),
                                      ddp_dropout_new(dropout), DDP_END);

    return ddp_parallel_new(DDP_CONCAT, ddp_chain_new(DDP_END),
                            ddp_layer_set_name(made, ""), DDP_END);
}

static ddp_layer_t *block(int *channels, int layers, int growth, float dropout)
{
    ddp_chain_t *c = ddp_chain_new(DDP_END);

    for (int i = 1; i <= layers; i++, *channels += growth)
        ddp_chain_add(
            c, numbered(layer(*channels, growth, dropout), "denselayer", i));
    return ddp__chain_done(c);
}

static ddp_layer_t *transition(int in)
{
    return ddp_chain_new(norm("norm", in), ddp_relu_new(),
                         conv("conv", in, in / 2, 1, 1),
                         ddp_mean_pool_new(2, NULL), DDP_END);
}

static ddp_layer_t *features(const struct densenet *d, int in, float dropout,
                             int *channels)
{
    ddp_chain_t *c = ddp_chain_new(
        conv("conv0", in, d->first, 7, 2), norm("norm0", d->first),
        ddp_relu_new(),
        ddp_max_pool_new(3, &(struct ddp_pool_options){DDP__POOL_DEFAULTS,
                                                       .stride = 2, .pad = 1}),
        DDP_END);

    *channels = d->first;
    for (int i = 0; i < 4; i++) {
        if (i > 0) {
            ddp_chain_add(c, numbered(transition(*channels), "transition", i));
            *channels /= 2;
        }
        ddp_chain_add(
            c, numbered(block(channels, d->layers[i], d->growth, dropout),
                        "denseblock", i + 1));
    }
    ddp_chain_add(c, norm("norm5", *channels));
    return ddp_layer_set_name(ddp__chain_done(c), "features");
}

static ddp_chain_t *densenet_new(const struct ddp_model_options *o,
                                 const void *kind)
{
    int channels;
    ddp_layer_t *f =
        features(kind, o->in_channels, ddp__rate(o->dropout, 0), &channels);
    struct ddp_dense_options no_bias = {DDP__DENSE_DEFAULTS,
                                        .init = {.zero_bias = true}};

    return ddp_chain_new(
        f, ddp_relu_new(), ddp_global_mean_pool_new(),
        ddp_layer_set_name(ddp_dense_new(channels, o->classes, &no_bias),
                           "classifier"),
        DDP_END);
}

static const struct densenet densenet121 = {32, {6, 12, 24, 16}, 64},
                             densenet161 = {48, {6, 12, 36, 24}, 96},
                             densenet169 = {32, {6, 12, 32, 32}, 64},
                             densenet201 = {32, {6, 12, 48, 32}, 64};

const struct ddp__model ddp__densenet_models[] = {
    {"densenet121", densenet_new, &densenet121, {0}},
    {"densenet161", densenet_new, &densenet161, {0}},
    {"densenet169", densenet_new, &densenet169, {0}},
    {"densenet201", densenet_new, &densenet201, {0}},
    {0},
};
