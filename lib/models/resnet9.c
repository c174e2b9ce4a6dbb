/* resnet9.c - a short residual network for 32x32 images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   D. Page, "How to train your ResNet", 2018: the DAWNBench network
 *          for CIFAR-10, here with mean instead of max pooling at the end.
 */
#include "config.h"

#include "models/models.h"

static ddp_layer_t *conv(int in, int out)
{
    return ddp_conv_new(in, out, 3,
                        &(struct ddp_conv_options){DDP__CONV_DEFAULTS, .pad = 1,
                                                   .no_bias = true});
}

static ddp_layer_t *conv_norm_relu(int in, int out)
{
    return ddp_chain_new(conv(in, out), ddp_batch_norm_new(out, NULL),
                         ddp_relu_new(), DDP_END);
}

static ddp_layer_t *conv_pool_norm_relu(int in, int out)
{
    return ddp_chain_new(conv(in, out), ddp_max_pool_new(2, NULL),
                         ddp_batch_norm_new(out, NULL), ddp_relu_new(),
                         DDP_END);
}

static ddp_layer_t *residual(int c)
{
    return ddp_skip_new(
        ddp_chain_new(conv_norm_relu(c, c), conv_norm_relu(c, c), DDP_END),
        DDP_END);
}

static ddp_chain_t *resnet9_new(const struct ddp_model_options *o,
                                const void *kind)
{
    int w = o->width;

    (void)kind;
    return ddp_chain_new(conv_norm_relu(o->in_channels, w),
                         conv_pool_norm_relu(w, 2 * w), residual(2 * w),
                         conv_pool_norm_relu(2 * w, 4 * w),
                         conv_pool_norm_relu(4 * w, 8 * w), residual(8 * w),
                         ddp_global_mean_pool_new(),
                         ddp_dense_new(8 * w, o->classes, NULL), DDP_END);
}

const struct ddp__model ddp__resnet9_models[] = {
    {"resnet9", resnet9_new, NULL, {32, 0, DDP_BILINEAR, false}},
    {0},
};
