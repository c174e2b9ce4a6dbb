/* efficientnet.c - inverted residuals, scaled in depth, width and image size
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Tan and Le, "EfficientNet", 2019, table 1, and "EfficientNetV2",
 *          2021, table 4; version 1 has torchvision's gate, a sigmoid.
 */
#include "config.h"

#include <math.h>

#include "models/models.h"
#include "models/parts.h"

struct stage {
    int expand, kernel, stride, in, out, blocks;
    bool fused; /* and without squeeze-excite */
};

struct efficientnet {
    const struct stage *stage; /* up to one of kernel 0 */
    double width, depth;
    int last; /* channels of the last convolution; 0: 4 times its input */
    float dropout;
    struct ddp_batch_norm_options norm;
};

static const struct stage version1[] = {
    {1, 3, 1, 32, 16, 1, false},   {6, 3, 2, 16, 24, 2, false},
    {6, 5, 2, 24, 40, 2, false},   {6, 3, 2, 40, 80, 3, false},
    {6, 5, 1, 80, 112, 3, false},  {6, 5, 2, 112, 192, 4, false},
    {6, 3, 1, 192, 320, 1, false}, {0},
};

static const struct stage version2_s[] = {
    {1, 3, 1, 24, 24, 2, true},
    {4, 3, 2, 24, 48, 4, true},
    {4, 3, 2, 48, 64, 4, true},
    {4, 3, 2, 64, 128, 6, false},
    {6, 3, 1, 128, 160, 9, false},
    {6, 3, 2, 160, 256, 15, false},
    {0},
};

static const struct stage version2_m[] = {
    {1, 3, 1, 24, 24, 3, true},     {4, 3, 2, 24, 48, 5, true},
    {4, 3, 2, 48, 80, 5, true},     {4, 3, 2, 80, 160, 7, false},
    {6, 3, 1, 160, 176, 14, false}, {6, 3, 2, 176, 304, 18, false},
    {6, 3, 1, 304, 512, 5, false},  {0},
};

static const struct stage version2_l[] = {
    {1, 3, 1, 32, 32, 4, true},     {4, 3, 2, 32, 64, 7, true},
    {4, 3, 2, 64, 96, 7, true},     {4, 3, 2, 96, 192, 10, false},
    {6, 3, 1, 192, 224, 19, false}, {6, 3, 2, 224, 384, 25, false},
    {6, 3, 1, 384, 640, 7, false},  {0},
};

static int channels(const struct efficientnet *e, int c)
{
    return ddp__round_channels(c * e->width);
}

static int blocks(const struct efficientnet *e, const struct stage *s)
{
    return (int)ceil(s->blocks * e->depth);
}

static ddp_layer_t *unit(const struct efficientnet *e, int in, int out,
                         int kernel, int stride)
{
    return ddp__unit_new(
        in, out, kernel,
        &(struct ddp__unit){
            .conv = {DDP__CONV_DEFAULTS, .stride = stride, .pad = kernel / 2},
            .norm = e->norm,
            .act = DDP_SILU});
}

/* Block i of a stage; depth: its fraction of the stochastic depth. */
static ddp_layer_t *block(const struct efficientnet *e, const struct stage *s,
                          int i, float depth)
{
    int out = channels(e, s->out), in = i == 0 ? channels(e, s->in) : out;

    return ddp__mbconv_new(&(struct ddp__mbconv){
        .name = "block",
        .in = in,
        .expanded = ddp__round_channels((double)in * s->expand),
        .out = out,
        .kernel = s->kernel,
        .stride = i == 0 ? s->stride : 1,
        .squeezed = s->fused ? 0 : in / 4,
        .act = DDP_SILU,
        .squeeze = DDP_SILU,
        .gate = DDP_SIGMOID,
        .norm = e->norm,
        .depth = depth,
        .fused = s->fused});
}

/* Later blocks are dropped more often. */
static ddp_layer_t *features(const struct efficientnet *e, float depth, int in,
                             int last)
{
    const struct stage *s = e->stage;
    ddp_chain_t *c =
        ddp_chain_new(unit(e, in, channels(e, s->in), 3, 2), DDP_END);
    int total = 0, done = 0;

    for (s = e->stage; s->kernel; s++)
        total += blocks(e, s);
    for (s = e->stage; s->kernel; s++) {
        ddp_chain_t *stage = ddp_chain_new(DDP_END);

        for (int i = 0; i < blocks(e, s); i++, done++)
            ddp_chain_add(stage,
                          block(e, s, i, depth * (float)done / (float)total));
        ddp_chain_add(c, ddp__chain_done(stage));
    }
    ddp_chain_add(c, unit(e, channels(e, s[-1].out), last, 1, 1));
    return ddp_layer_set_name(ddp__chain_done(c), "features");
}

static ddp_chain_t *efficientnet_new(const struct ddp_model_options *o,
                                     const void *kind)
{
    const struct efficientnet *e = kind;
    const struct stage *s = e->stage;
    struct ddp_weight_init init = {.bound = 1 / sqrtf((float)o->classes),
                                   .zero_bias = true};
    int last = e->last;

    while (s[1].kernel)
        s++;
    if (!last)
        last = 4 * channels(e, s->out);
    return ddp_chain_new(
        features(e, ddp__rate(o->stochastic_depth, 0.2f), o->in_channels, last),
        ddp_global_mean_pool_new(),
        ddp__classifier_new("classifier", last, o->classes,
                            ddp__rate(o->dropout, e->dropout), init),
        DDP_END);
}

static const struct efficientnet
    b0 = {version1, 1.0, 1.0, 0, 0.2f, {DDP__NORM_DEFAULTS}},
    b1 = {version1, 1.0, 1.1, 0, 0.2f, {DDP__NORM_DEFAULTS}},
    b2 = {version1, 1.1, 1.2, 0, 0.3f, {DDP__NORM_DEFAULTS}},
    b3 = {version1, 1.2, 1.4, 0, 0.3f, {DDP__NORM_DEFAULTS}},
    b4 = {version1, 1.4, 1.8, 0, 0.4f, {DDP__NORM_DEFAULTS}},
    b5 = {version1, 1.6,
          2.2,      0,
          0.4f,     {DDP__NORM_DEFAULTS, .eps = 1e-3f, .momentum = 0.01f}},
    b6 = {version1, 1.8,
          2.6,      0,
          0.5f,     {DDP__NORM_DEFAULTS, .eps = 1e-3f, .momentum = 0.01f}},
    b7 = {version1, 2.0,
          3.1,      0,
          0.5f,     {DDP__NORM_DEFAULTS, .eps = 1e-3f, .momentum = 0.01f}},
    v2_s = {version2_s, 1, 1, 1280, 0.2f, {DDP__NORM_DEFAULTS, .eps = 1e-3f}},
    v2_m = {version2_m, 1, 1, 1280, 0.3f, {DDP__NORM_DEFAULTS, .eps = 1e-3f}},
    v2_l = {version2_l, 1, 1, 1280, 0.4f, {DDP__NORM_DEFAULTS, .eps = 1e-3f}};

const struct ddp__model ddp__efficientnet_models[] = {
    {"efficientnet_b0", efficientnet_new, &b0, {224, 256, DDP_BICUBIC, false}},
    {"efficientnet_b1", efficientnet_new, &b1, {240, 256, DDP_BICUBIC, false}},
    {"efficientnet_b2", efficientnet_new, &b2, {288, 288, DDP_BICUBIC, false}},
    {"efficientnet_b3", efficientnet_new, &b3, {300, 320, DDP_BICUBIC, false}},
    {"efficientnet_b4", efficientnet_new, &b4, {380, 384, DDP_BICUBIC, false}},
    {"efficientnet_b5", efficientnet_new, &b5, {456, 456, DDP_BICUBIC, false}},
    {"efficientnet_b6", efficientnet_new, &b6, {528, 528, DDP_BICUBIC, false}},
    {"efficientnet_b7", efficientnet_new, &b7, {600, 600, DDP_BICUBIC, false}},
    {"efficientnet_v2_s",
     efficientnet_new,
     &v2_s,
     {384, 384, DDP_BILINEAR, false}},
    {"efficientnet_v2_m",
     efficientnet_new,
     &v2_m,
     {480, 480, DDP_BILINEAR, false}},
    {"efficientnet_v2_l",
     efficientnet_new,
     &v2_l,
     {480, 480, DDP_BICUBIC, true}},
    {0},
};
