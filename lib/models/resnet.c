/* resnet.c - residual networks, wide ones, and ResNeXt
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   He et al., "Deep residual learning for image recognition", 2015,
 *          table 1; Zagoruyko and Komodakis, "Wide residual networks", 2016;
 *          Xie et al., "Aggregated residual transformations for deep neural
 *          networks", 2016.  The stride sits in the 3x3 convolution of a
 *          bottleneck ("v1.5"), and layers have torchvision's names.
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

/* The structure of a network of the family. */
struct kind {
    bool bottleneck;
    int blocks[4];
    int groups, base; /* bottleneck: its 3x3 has groups of base channels where
                         a ResNet's has 64; 0: 1 and 64 */
};

struct resnet {
    const struct kind *kind;
    const struct ddp_model_options *o;
};

static ddp_layer_t *grouped(const char *name, int in, int out, int k,
                            int stride, int groups)
{
    return ddp_layer_set_name(
        ddp_conv_new(in, out, k,
                     &(struct ddp_conv_options){
                         DDP__CONV_DEFAULTS, .stride = stride, .pad = k / 2,
                         .groups = groups, .no_bias = true}),
        name);
}

static ddp_layer_t *conv(const char *name, int in, int out, int k, int stride)
{
    return grouped(name, in, out, k, stride, 1);
}

static ddp_layer_t *norm(const char *name, int c, bool zero)
{
    return ddp_layer_set_name(
        ddp_batch_norm_new(c,
                           &(struct ddp_batch_norm_options){DDP__NORM_DEFAULTS,
                                                            .zero_init = zero}),
        name);
}

/* Two 3x3 convolutions. */
static ddp_layer_t *basic(const struct resnet *r, int in, int width, int stride)
{
    return ddp_chain_new(conv("conv1", in, width, 3, stride),
                         norm("bn1", width, false), ddp_relu_new(),
                         conv("conv2", width, width, 3, 1),
                         norm("bn2", width, r->o->zero_init_residual), DDP_END);
}

/* 1x1 to fewer channels, 3x3, 1x1 to four times as many. */
static ddp_layer_t *bottleneck(const struct resnet *r, int in, int width,
                               int stride)
{
    int groups = r->kind->groups ? r->kind->groups : 1;
    int mid = r->kind->base ? width * r->kind->base / 64 * groups : width;

    return ddp_chain_new(
        conv("conv1", in, mid, 1, 1), norm("bn1", mid, false), ddp_relu_new(),
        grouped("conv2", mid, mid, 3, stride, groups), norm("bn2", mid, false),
        ddp_relu_new(), conv("conv3", mid, 4 * width, 1, 1),
        norm("bn3", 4 * width, r->o->zero_init_residual), DDP_END);
}

/* relu(branch(x) + shortcut(x)); the shortcut changes shape where needed. */
static ddp_layer_t *block(const struct resnet *r, int in, int width, int stride)
{
    int out = r->kind->bottleneck ? 4 * width : width;
    ddp_layer_t *branch = r->kind->bottleneck ? bottleneck(r, in, width, stride)
                                              : basic(r, in, width, stride);
    ddp_layer_t *shortcut = DDP_END;

    if (stride != 1 || in != out)
        shortcut =
            ddp_layer_set_name(ddp_chain_new(conv(NULL, in, out, 1, stride),
                                             norm(NULL, out, false), DDP_END),
                               "downsample");
    return ddp_chain_new(
        ddp_layer_set_name(
            ddp_skip_new(ddp_layer_set_name(branch, ""), shortcut), ""),
        ddp_relu_new(), DDP_END);
}

static ddp_layer_t *stage(const struct resnet *r, int i, int *in)
{
    static const char *const name[] = {"layer1", "layer2", "layer3", "layer4"};
    ddp_chain_t *s = ddp_chain_new(DDP_END);
    int width = r->o->width << i;

    for (int b = 0; b < r->kind->blocks[i]; b++) {
        ddp_chain_add(s, block(r, *in, width, i > 0 && b == 0 ? 2 : 1));
        *in = r->kind->bottleneck ? 4 * width : width;
    }
    return ddp_layer_set_name(s, name[i]);
}

/* 7x7 stride 2 and pooling for photographs, 3x3 for 32x32 pixels. */
static void add_stem(ddp_chain_t *c, const struct ddp_model_options *o)
{
    int width = o->width;

    if (o->small_stem)
        ddp_chain_add(c, conv("conv1", o->in_channels, width, 3, 1));
    else
        ddp_chain_add(c, conv("conv1", o->in_channels, width, 7, 2));
    ddp_chain_add(c, norm("bn1", width, false));
    ddp_chain_add(c, ddp_relu_new());
    if (!o->small_stem)
        ddp_chain_add(c, ddp_max_pool_new(3, &(struct ddp_pool_options){
                                                 DDP__POOL_DEFAULTS,
                                                 .stride = 2, .pad = 1}));
}

static ddp_chain_t *resnet_new(const struct ddp_model_options *o,
                               const void *kind)
{
    struct resnet r = {kind, o};
    int in = o->width;
    ddp_chain_t *m = ddp_chain_new(DDP_END);

    add_stem(m, o);
    for (int i = 0; i < 4; i++)
        ddp_chain_add(m, stage(&r, i, &in));
    ddp_chain_add(m, ddp_global_mean_pool_new());
    ddp_chain_add(
        m, ddp_layer_set_name(ddp_dense_new(in, o->classes, NULL), "fc"));
    return ddp__chain_done(m);
}

static const struct kind resnet18 = {false, {2, 2, 2, 2}, 0, 0},
                         resnet34 = {false, {3, 4, 6, 3}, 0, 0},
                         resnet50 = {true, {3, 4, 6, 3}, 0, 0},
                         resnet101 = {true, {3, 4, 23, 3}, 0, 0},
                         resnet152 = {true, {3, 8, 36, 3}, 0, 0},
                         resnext50_32x4d = {true, {3, 4, 6, 3}, 32, 4},
                         resnext101_32x8d = {true, {3, 4, 23, 3}, 32, 8},
                         resnext101_64x4d = {true, {3, 4, 23, 3}, 64, 4},
                         wide_resnet50_2 = {true, {3, 4, 6, 3}, 1, 128},
                         wide_resnet101_2 = {true, {3, 4, 23, 3}, 1, 128};

const struct ddp__model ddp__resnet_models[] = {
    {"resnet18", resnet_new, &resnet18, {0}},
    {"resnet34", resnet_new, &resnet34, {0}},
    {"resnet50", resnet_new, &resnet50, {0}},
    {"resnet101", resnet_new, &resnet101, {0}},
    {"resnet152", resnet_new, &resnet152, {0}},
    {"resnext50_32x4d", resnet_new, &resnext50_32x4d, {0}},
    {"resnext101_32x8d", resnet_new, &resnext101_32x8d, {0}},
    {"resnext101_64x4d",
     resnet_new,
     &resnext101_64x4d,
     {224, 232, DDP_BILINEAR, false}},
    {"wide_resnet50_2", resnet_new, &wide_resnet50_2, {0}},
    {"wide_resnet101_2", resnet_new, &wide_resnet101_2, {0}},
    {0},
};
