/* vgg.c - 3x3 convolutions in five stages, and three dense layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Simonyan and Zisserman, "Very deep convolutional networks for
 *          large-scale image recognition", 2014, table 1: A, B, D and E.
 */
#include "config.h"

#include <math.h>

#include "models/models.h"
#include "models/parts.h"

struct vgg {
    int convs[5]; /* of each stage */
    bool norm;
};

static void add_conv(ddp_chain_t *c, int in, int out, bool norm)
{
    struct ddp_conv_options o = {
        DDP__CONV_DEFAULTS, .pad = 1,
        .init = {.std = sqrtf(2 / (9 * (float)out)), .zero_bias = true}};

    ddp_chain_add(c, ddp_conv_new(in, out, 3, &o));
    if (norm)
        ddp_chain_add(c, ddp_batch_norm_new(out, NULL));
    ddp_chain_add(c, ddp_relu_new());
}

static ddp_layer_t *features(const struct vgg *v, int in)
{
    static const int width[5] = {64, 128, 256, 512, 512};
    ddp_chain_t *c = ddp_chain_new(DDP_END);

    for (int s = 0; s < 5; s++) {
        for (int i = 0; i < v->convs[s]; i++, in = width[s])
            add_conv(c, in, width[s], v->norm);
        ddp_chain_add(c, ddp_max_pool_new(2, NULL));
    }
    return ddp_layer_set_name(ddp__chain_done(c), "features");
}

static ddp_layer_t *dense(int in, int out, int pixels)
{
    return ddp_dense_new(
        in, out,
        &(struct ddp_dense_options){DDP__DENSE_DEFAULTS, .pixels = pixels,
                                    .init = {.std = 0.01f, .zero_bias = true}});
}

static ddp_chain_t *vgg_new(const struct ddp_model_options *o, const void *kind)
{
    float dropout = ddp__rate(o->dropout, 0.5f);

    return ddp_chain_new(
        features(kind, o->in_channels), ddp_adaptive_mean_pool_new(7, 7),
        ddp_flatten_new(),
        ddp_layer_set_name(
            ddp_chain_new(dense(512 * 7 * 7, 4096, 7 * 7), ddp_relu_new(),
                          ddp_dropout_new(dropout), dense(4096, 4096, 1),
                          ddp_relu_new(), ddp_dropout_new(dropout),
                          dense(4096, o->classes, 1), DDP_END),
            "classifier"),
        DDP_END);
}

static const struct vgg vgg11 = {{1, 1, 2, 2, 2}, false},
                        vgg11_bn = {{1, 1, 2, 2, 2}, true},
                        vgg13 = {{2, 2, 2, 2, 2}, false},
                        vgg13_bn = {{2, 2, 2, 2, 2}, true},
                        vgg16 = {{2, 2, 3, 3, 3}, false},
                        vgg16_bn = {{2, 2, 3, 3, 3}, true},
                        vgg19 = {{2, 2, 4, 4, 4}, false},
                        vgg19_bn = {{2, 2, 4, 4, 4}, true};

const struct ddp__model ddp__vgg_models[] = {
    {"vgg11", vgg_new, &vgg11, {0}},
    {"vgg11_bn", vgg_new, &vgg11_bn, {0}},
    {"vgg13", vgg_new, &vgg13, {0}},
    {"vgg13_bn", vgg_new, &vgg13_bn, {0}},
    {"vgg16", vgg_new, &vgg16, {0}},
    {"vgg16_bn", vgg_new, &vgg16_bn, {0}},
    {"vgg19", vgg_new, &vgg19, {0}},
    {"vgg19_bn", vgg_new, &vgg19_bn, {0}},
    {0},
};
