/* alexnet.c - five convolutions and three dense layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Krizhevsky, "One weird trick for parallelizing convolutional neural
 *          networks", 2014, as torchvision has it: without normalisation.
 */
#include "config.h"

#include <math.h>

#include "models/models.h"
#include "models/parts.h"

/* PyTorch's default initialisation: uniform within 1 / sqrt(fan in). */
static ddp_layer_t *conv(int in, int out, int kernel, int stride, int pad)
{
    float bound = 1 / sqrtf((float)(in * kernel * kernel));

    return ddp_conv_new(in, out, kernel,
                        &(struct ddp_conv_options){DDP__CONV_DEFAULTS,
                                                   .stride = stride, .pad = pad,
                                                   .init = {.bound = bound}});
}

static ddp_layer_t *pool(void)
{
    return ddp_max_pool_new(
        3, &(struct ddp_pool_options){DDP__POOL_DEFAULTS, .stride = 2});
}

static ddp_chain_t *alexnet_new(const struct ddp_model_options *o,
                                const void *kind)
{
    float dropout = ddp__rate(o->dropout, 0.5f);
    ddp_layer_t *features = ddp_chain_new(
        conv(o->in_channels, 64, 11, 4, 2), ddp_relu_new(), pool(),
        conv(64, 192, 5, 1, 2), ddp_relu_new(), pool(), conv(192, 384, 3, 1, 1),
        ddp_relu_new(), conv(384, 256, 3, 1, 1), ddp_relu_new(),
        conv(256, 256, 3, 1, 1), ddp_relu_new(), pool(), DDP_END);
    ddp_layer_t *classifier =
        ddp_chain_new(ddp_dropout_new(dropout),
                      ddp_dense_new(256 * 6 * 6, 4096,
                                    &(struct ddp_dense_options){
                                        DDP__DENSE_DEFAULTS, .pixels = 6 * 6}),
                      ddp_relu_new(), ddp_dropout_new(dropout),
                      ddp_dense_new(4096, 4096, NULL), ddp_relu_new(),
                      ddp_dense_new(4096, o->classes, NULL), DDP_END);

    (void)kind;
    return ddp_chain_new(ddp_layer_set_name(features, "features"),
                         ddp_adaptive_mean_pool_new(6, 6), ddp_flatten_new(),
                         ddp_layer_set_name(classifier, "classifier"), DDP_END);
}

const struct ddp__model ddp__alexnet_models[] = {
    {"alexnet", alexnet_new, NULL, {0}},
    {0},
};
