/* airbench.c - a network for 32x32 images that learns in few epochs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   K. Jordan, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", 2024,
 *          arXiv:2404.00498: the network of airbench94.  Its first layer is
 *          for ddp_chain_whiten() and then frozen; the scales of norms stay 1.
 *          Its factor of 1/9 on the outputs is in the initial weights of the
 *          head here, whose learning rate is 1/81 of the others' for that.
 */
#include "config.h"

#include <math.h>

#include "models/models.h"
#include "models/parts.h"

/* PyTorch's initial values where the kernel is not an identity. */
static ddp_layer_t *conv(int in, int out)
{
    return ddp_conv_new(in, out, 3,
                        &(struct ddp_conv_options){
                            DDP__CONV_DEFAULTS, .pad = 1, .no_bias = true,
                            .init.bound = 1 / sqrtf(9 * (float)in),
                            .identity = true});
}

static ddp_layer_t *norm(const char *name, int c)
{
    return ddp_layer_set_name(
        ddp_batch_norm_new(c,
                           &(struct ddp_batch_norm_options){DDP__NORM_DEFAULTS,
                                                            .momentum = 0.4f}),
        name);
}

static ddp_layer_t *block(const char *name, int in, int out)
{
    return ddp_layer_set_name(
        ddp_chain_new(ddp_layer_set_name(conv(in, out), "conv1"),
                      ddp_max_pool_new(2, NULL), norm("norm1", out),
                      ddp_gelu_new(),
                      ddp_layer_set_name(conv(out, out), "conv2"),
                      norm("norm2", out), ddp_gelu_new(), DDP_END),
        name);
}

/* A pair of outputs of opposite signs for each value of a patch. */
static ddp_layer_t *whitening(int in, int out)
{
    return ddp_layer_set_name(
        ddp_conv_new(
            in, out, 2,
            &(struct ddp_conv_options){DDP__CONV_DEFAULTS, .no_bias = true}),
        "whiten");
}

static ddp_layer_t *head(int in, int classes)
{
    return ddp_layer_set_name(
        ddp_dense_new(in, classes,
                      &(struct ddp_dense_options){
                          DDP__DENSE_DEFAULTS, .no_bias = true,
                          .init.bound = 1 / (9 * sqrtf((float)in))}),
        "head");
}

/* The last mean is of one pixel, unless images are larger than 32x32. */
static ddp_chain_t *airbench_new(const struct ddp_model_options *o,
                                 const void *kind)
{
    int first = 2 * 4 * o->in_channels, w = o->width;

    (void)kind;
    return ddp_chain_new(whitening(o->in_channels, first), ddp_gelu_new(),
                         block("block1", first, w), block("block2", w, 4 * w),
                         block("block3", 4 * w, 4 * w),
                         ddp_max_pool_new(3, NULL), ddp_global_mean_pool_new(),
                         head(4 * w, o->classes), DDP_END);
}

const struct ddp__model ddp__airbench_models[] = {
    {"airbench", airbench_new, NULL, {32, 0, DDP_BILINEAR, false}},
    {0},
};
