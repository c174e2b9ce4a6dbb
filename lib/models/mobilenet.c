/* mobilenet.c - depthwise convolutions between narrow layers, for phones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Sandler et al., "MobileNetV2: inverted residuals and linear
 *          bottlenecks", 2018, table 2; Howard et al., "Searching for
 *          MobileNetV3", 2019, tables 1 and 2.
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

static const struct ddp_weight_init normal = {.std = 0.01f, .zero_bias = true};

static ddp_layer_t *features(ddp_chain_t *c)
{
    return ddp_layer_set_name(ddp__chain_done(c), "features");
}

/* ---- version 2 ---------------------------------------------------------- */

static ddp_layer_t *unit2(int in, int out, int kernel, int stride)
{
    return ddp__unit_new(
        in, out, kernel,
        &(struct ddp__unit){
            .conv = {DDP__CONV_DEFAULTS, .stride = stride, .pad = kernel / 2},
            .norm = {DDP__NORM_DEFAULTS},
            .act = DDP_RELU6});
}

/* The table is the paper's (table 2): expansion, channels, repeats, stride. */
static ddp_chain_t *mobilenet_v2_new(const struct ddp_model_options *o,
                                     const void *kind)
{
    static const struct {
        int expand, out, blocks, stride;
    } stage[] = {
        {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2},  {6, 64, 4, 2},
        {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
    };
    ddp_chain_t *c = ddp_chain_new(unit2(o->in_channels, 32, 3, 2), DDP_END);
    int in = 32;

    (void)kind;
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stage[s].blocks; i++, in = stage[s].out)
            ddp_chain_add(c, ddp__mbconv_new(&(struct ddp__mbconv){
                                 .name = "conv",
                                 .in = in,
                                 .expanded = in * stage[s].expand,
                                 .out = stage[s].out,
                                 .kernel = 3,
                                 .stride = i == 0 ? stage[s].stride : 1,
                                 .act = DDP_RELU6,
                                 .norm = {DDP__NORM_DEFAULTS},
                                 .flat = true}));
    ddp_chain_add(c, unit2(in, 1280, 1, 1));
    return ddp_chain_new(features(c), ddp_global_mean_pool_new(),
                         ddp__classifier_new("classifier", 1280, o->classes,
                                             ddp__rate(o->dropout, 0.2f),
                                             normal),
                         DDP_END);
}

/* ---- version 3 ---------------------------------------------------------- */

static const struct ddp_batch_norm_options slow = {
    DDP__NORM_DEFAULTS, .eps = 1e-3f, .momentum = 0.01f};

struct block3 {
    int kernel, expanded, out;
    bool squeeze;
    enum ddp_act act;
    int stride;
};

struct mobilenet3 {
    const struct block3 *block; /* up to one of kernel 0 */
    int last;                   /* features that are classified */
};

static const struct block3 large[] = {
    {3, 16, 16, false, DDP_RELU, 1},
    {3, 64, 24, false, DDP_RELU, 2},
    {3, 72, 24, false, DDP_RELU, 1},
    {5, 72, 40, true, DDP_RELU, 2},
    {5, 120, 40, true, DDP_RELU, 1},
    {5, 120, 40, true, DDP_RELU, 1},
    {3, 240, 80, false, DDP_HARDSWISH, 2},
    {3, 200, 80, false, DDP_HARDSWISH, 1},
    {3, 184, 80, false, DDP_HARDSWISH, 1},
    {3, 184, 80, false, DDP_HARDSWISH, 1},
    {3, 480, 112, true, DDP_HARDSWISH, 1},
    {3, 672, 112, true, DDP_HARDSWISH, 1},
    {5, 672, 160, true, DDP_HARDSWISH, 2},
    {5, 960, 160, true, DDP_HARDSWISH, 1},
    {5, 960, 160, true, DDP_HARDSWISH, 1},
    {0},
};

static const struct block3 small[] = {
    {3, 16, 16, true, DDP_RELU, 2},       {3, 72, 24, false, DDP_RELU, 2},
    {3, 88, 24, false, DDP_RELU, 1},      {5, 96, 40, true, DDP_HARDSWISH, 2},
    {5, 240, 40, true, DDP_HARDSWISH, 1}, {5, 240, 40, true, DDP_HARDSWISH, 1},
    {5, 120, 48, true, DDP_HARDSWISH, 1}, {5, 144, 48, true, DDP_HARDSWISH, 1},
    {5, 288, 96, true, DDP_HARDSWISH, 2}, {5, 576, 96, true, DDP_HARDSWISH, 1},
    {5, 576, 96, true, DDP_HARDSWISH, 1}, {0},
};

static ddp_layer_t *unit3(int in, int out, int kernel, int stride)
{
    return ddp__unit_new(
        in, out, kernel,
        &(struct ddp__unit){
            .conv = {DDP__CONV_DEFAULTS, .stride = stride, .pad = kernel / 2},
            .norm = slow,
            .act = DDP_HARDSWISH});
}

static ddp_layer_t *block3(const struct block3 *b, int in)
{
    return ddp__mbconv_new(&(struct ddp__mbconv){
        .name = "block",
        .in = in,
        .expanded = b->expanded,
        .out = b->out,
        .kernel = b->kernel,
        .stride = b->stride,
        .squeezed = b->squeeze ? ddp__round_channels(b->expanded / 4) : 0,
        .act = b->act,
        .squeeze = DDP_RELU,
        .gate = DDP_HARDSIGMOID,
        .norm = slow});
}

static ddp_layer_t *classifier3(int in, int mid, int classes, float dropout)
{
    struct ddp_dense_options o = {DDP__DENSE_DEFAULTS, .init = normal};

    return ddp_layer_set_name(
        ddp_chain_new(ddp_dense_new(in, mid, &o), ddp_act_new(DDP_HARDSWISH),
                      ddp_dropout_new(dropout), ddp_dense_new(mid, classes, &o),
                      DDP_END),
        "classifier");
}

static ddp_chain_t *mobilenet_v3_new(const struct ddp_model_options *o,
                                     const void *kind)
{
    const struct mobilenet3 *m = kind;
    ddp_chain_t *c = ddp_chain_new(unit3(o->in_channels, 16, 3, 2), DDP_END);
    int in = 16;

    for (const struct block3 *b = m->block; b->kernel; in = b++->out)
        ddp_chain_add(c, block3(b, in));
    ddp_chain_add(c, unit3(in, 6 * in, 1, 1));
    return ddp_chain_new(
        features(c), ddp_global_mean_pool_new(),
        classifier3(6 * in, m->last, o->classes, ddp__rate(o->dropout, 0.2f)),
        DDP_END);
}

const struct ddp__model ddp__mobilenet_models[] = {
    {"mobilenet_v2", mobilenet_v2_new, NULL, {0}},
    {"mobilenet_v3_large",
     mobilenet_v3_new,
     &(const struct mobilenet3){large, 1280},
     {0}},
    {"mobilenet_v3_small",
     mobilenet_v3_new,
     &(const struct mobilenet3){small, 1024},
     {0}},
    {0},
};
