/* resnet.c - residual networks
 *
 * Source   He et al., "Deep residual learning for image recognition", 2015,
 *          table 1; the stride sits in the 3x3 convolution of a bottleneck
 *          ("v1.5"), and layers have torchvision's names.
 */
#include "config.h"

#include "models.h"

/* What a network of the family is made of. */
struct resnet {
    const struct ddp_model_options *o;
    int width; /* of the first stage */
    bool bottleneck;
    int blocks[4];
};

static ddp_layer_t *conv(const char *name, int in, int out, int k, int stride)
{
    return ddp_layer_set_name(
        ddp_conv_new(in, out, k,
                     &(struct ddp_conv_options){
                         .stride = stride, .pad = k / 2, .no_bias = true}),
        name);
}

static ddp_layer_t *norm(const char *name, int c, bool zero)
{
    return ddp_layer_set_name(
        ddp_batch_norm_new(c,
                           &(struct ddp_batch_norm_options){.zero_init = zero}),
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
    return ddp_chain_new(
        conv("conv1", in, width, 1, 1), norm("bn1", width, false),
        ddp_relu_new(), conv("conv2", width, width, 3, stride),
        norm("bn2", width, false), ddp_relu_new(),
        conv("conv3", width, 4 * width, 1, 1),
        norm("bn3", 4 * width, r->o->zero_init_residual), DDP_END);
}

/* relu(branch(x) + shortcut(x)); the shortcut changes shape where needed. */
static ddp_layer_t *block(const struct resnet *r, int in, int width, int stride)
{
    int out = r->bottleneck ? 4 * width : width;
    ddp_layer_t *branch = r->bottleneck ? bottleneck(r, in, width, stride)
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
    int width = r->width << i;

    for (int b = 0; b < r->blocks[i]; b++) {
        ddp_chain_add(s, block(r, *in, width, i > 0 && b == 0 ? 2 : 1));
        *in = r->bottleneck ? 4 * width : width;
    }
    return ddp_layer_set_name(s, name[i]);
}

/* 7x7 stride 2 and pooling for photographs, 3x3 for 32x32 pixels. */
static void add_stem(ddp_chain_t *c, const struct ddp_model_options *o,
                     int width)
{
    if (o->small_stem)
        ddp_chain_add(c, conv("conv1", o->in_channels, width, 3, 1));
    else
        ddp_chain_add(c, conv("conv1", o->in_channels, width, 7, 2));
    ddp_chain_add(c, norm("bn1", width, false));
    ddp_chain_add(c, ddp_relu_new());
    if (!o->small_stem)
        ddp_chain_add(c, ddp_max_pool_new(3, &(struct ddp_pool_options){
                                                 .stride = 2, .pad = 1}));
}

static ddp_chain_t *resnet_new(const struct ddp_model_options *o,
                               bool bottleneck_blocks, int a, int b, int c,
                               int d)
{
    int width = o->width ? o->width : 64, in = width;
    struct resnet r = {o, width, bottleneck_blocks, {a, b, c, d}};
    ddp_chain_t *m = ddp_chain_new(DDP_END);

    add_stem(m, o, width);
    for (int i = 0; i < 4; i++)
        ddp_chain_add(m, stage(&r, i, &in));
    ddp_chain_add(m, ddp_global_mean_pool_new());
    if (ddp_chain_add(
            m, ddp_layer_set_name(ddp_dense_new(in, o->classes), "fc")) == 0)
        return m;
    ddp_chain_free(m);
    return NULL;
}

ddp_chain_t *ddp__resnet18_new(const struct ddp_model_options *o)
{
    return resnet_new(o, false, 2, 2, 2, 2);
}

ddp_chain_t *ddp__resnet34_new(const struct ddp_model_options *o)
{
    return resnet_new(o, false, 3, 4, 6, 3);
}

ddp_chain_t *ddp__resnet50_new(const struct ddp_model_options *o)
{
    return resnet_new(o, true, 3, 4, 6, 3);
}

ddp_chain_t *ddp__resnet101_new(const struct ddp_model_options *o)
{
    return resnet_new(o, true, 3, 4, 23, 3);
}

ddp_chain_t *ddp__resnet152_new(const struct ddp_model_options *o)
{
    return resnet_new(o, true, 3, 8, 36, 3);
}
