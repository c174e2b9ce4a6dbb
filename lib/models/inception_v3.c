/* inception_v3.c - Inception with factorised convolutions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Szegedy et al., "Rethinking the Inception architecture for computer
 *          vision", 2015, table 1 and figures 5 to 7, 10; layers have
 *          torchvision's names, which are those of the authors' release.
 */
#include "config.h"

#include "models/models.h"
#include "models/parts.h"

/* A kernel of kh x kw that keeps the image's size, but for a stride or where
 * `valid` asks for no padding. */
struct shape {
    int kh, kw, stride;
    bool valid;
};

static ddp_layer_t *conv(const char *name, int in, int out, struct shape s)
{
    struct ddp__unit u = {
        .conv = {DDP__CONV_DEFAULTS, .kernel_w = s.kw, .stride = s.stride,
                 .pad = s.valid ? 0 : s.kh / 2, .pad_w = s.valid ? 0 : s.kw / 2,
                 .init = {.std = 0.1f}},
        .norm = {DDP__NORM_DEFAULTS, .eps = 1e-3f},
        .act = DDP_RELU,
        .named = true,
    };

    return ddp_layer_set_name(ddp__unit_new(in, out, s.kh, &u), name);
}

static const struct shape one = {1, 1, 1, false}, three = {3, 3, 1, false},
                          five = {5, 5, 1, false}, wide3 = {1, 3, 1, false},
                          high3 = {3, 1, 1, false}, wide7 = {1, 7, 1, false},
                          high7 = {7, 1, 1, false}, valid = {3, 3, 1, true},
                          half = {3, 3, 2, true};

/* A branch of a module, with a name for each layer. */
static ddp_layer_t *unnamed(ddp_chain_t *branch)
{
    return ddp_layer_set_name(branch, "");
}

static ddp_layer_t *half_pool(void)
{
    return ddp_max_pool_new(
        3, &(struct ddp_pool_options){DDP__POOL_DEFAULTS, .stride = 2});
}

static ddp_layer_t *projected_pool(int in, int out)
{
    return unnamed(ddp_chain_new(
        ddp_mean_pool_new(3, &(struct ddp_pool_options){DDP__POOL_DEFAULTS,
                                                        .stride = 1, .pad = 1}),
        conv("branch_pool", in, out, one), DDP_END));
}

/* 35 x 35: figure 5. */
static ddp_layer_t *module_a(int in, int pool)
{
    return ddp_parallel_new(
        DDP_CONCAT, conv("branch1x1", in, 64, one),
        unnamed(ddp_chain_new(conv("branch5x5_1", in, 48, one),
                              conv("branch5x5_2", 48, 64, five), DDP_END)),
        unnamed(ddp_chain_new(conv("branch3x3dbl_1", in, 64, one),
                              conv("branch3x3dbl_2", 64, 96, three),
                              conv("branch3x3dbl_3", 96, 96, three), DDP_END)),
        projected_pool(in, pool), DDP_END);
}

/* To 17 x 17: figure 10. */
static ddp_layer_t *module_b(int in)
{
    return ddp_parallel_new(
        DDP_CONCAT, conv("branch3x3", in, 384, half),
        unnamed(ddp_chain_new(conv("branch3x3dbl_1", in, 64, one),
                              conv("branch3x3dbl_2", 64, 96, three),
                              conv("branch3x3dbl_3", 96, 96, half), DDP_END)),
        half_pool(), DDP_END);
}

/* 17 x 17: figure 6, 7 x 7 as 1 x 7 and 7 x 1. */
static ddp_layer_t *module_c(int in, int c)
{
    return ddp_parallel_new(
        DDP_CONCAT, conv("branch1x1", in, 192, one),
        unnamed(ddp_chain_new(conv("branch7x7_1", in, c, one),
                              conv("branch7x7_2", c, c, wide7),
                              conv("branch7x7_3", c, 192, high7), DDP_END)),
        unnamed(ddp_chain_new(conv("branch7x7dbl_1", in, c, one),
                              conv("branch7x7dbl_2", c, c, high7),
                              conv("branch7x7dbl_3", c, c, wide7),
                              conv("branch7x7dbl_4", c, c, high7),
                              conv("branch7x7dbl_5", c, 192, wide7), DDP_END)),
        projected_pool(in, 192), DDP_END);
}

/* To 8 x 8. */
static ddp_layer_t *module_d(int in)
{
    return ddp_parallel_new(
        DDP_CONCAT,
        unnamed(ddp_chain_new(conv("branch3x3_1", in, 192, one),
                              conv("branch3x3_2", 192, 320, half), DDP_END)),
        unnamed(ddp_chain_new(conv("branch7x7x3_1", in, 192, one),
                              conv("branch7x7x3_2", 192, 192, wide7),
                              conv("branch7x7x3_3", 192, 192, high7),
                              conv("branch7x7x3_4", 192, 192, half), DDP_END)),
        half_pool(), DDP_END);
}

/* 1 x 3 and 3 x 1, concatenated. */
static ddp_layer_t *branch_pair(const char *name_wide, const char *name_high)
{
    return ddp_layer_set_name(
        ddp_parallel_new(DDP_CONCAT, conv(name_wide, 384, 384, wide3),
                         conv(name_high, 384, 384, high3), DDP_END),
        "");
}

/* 8 x 8: figure 7. */
static ddp_layer_t *module_e(int in)
{
    return ddp_parallel_new(
        DDP_CONCAT, conv("branch1x1", in, 320, one),
        unnamed(ddp_chain_new(conv("branch3x3_1", in, 384, one),
                              branch_pair("branch3x3_2a", "branch3x3_2b"),
                              DDP_END)),
        unnamed(ddp_chain_new(conv("branch3x3dbl_1", in, 448, one),
                              conv("branch3x3dbl_2", 448, 384, three),
                              branch_pair("branch3x3dbl_3a", "branch3x3dbl_3b"),
                              DDP_END)),
        projected_pool(in, 192), DDP_END);
}

static ddp_layer_t *dense(int in, int out, float std)
{
    struct ddp_dense_options o = {DDP__DENSE_DEFAULTS, .init = {.std = std}};

    return ddp_layer_set_name(ddp_dense_new(in, out, &o), "fc");
}

/* Needs 17 x 17 pixels, as an image of 299 gives. */
static ddp_layer_t *aux(int in, int classes)
{
    struct ddp__unit u = {.conv = {DDP__CONV_DEFAULTS, .init = {.std = 0.01f}},
                          .norm = {DDP__NORM_DEFAULTS, .eps = 1e-3f},
                          .act = DDP_RELU,
                          .named = true};

    return ddp_aux_new(
        unnamed(ddp_chain_new(
            ddp_mean_pool_new(
                5, &(struct ddp_pool_options){DDP__POOL_DEFAULTS, .stride = 3}),
            conv("conv0", in, 128, one),
            ddp_layer_set_name(ddp__unit_new(128, 768, 5, &u), "conv1"),
            ddp_global_mean_pool_new(), dense(768, classes, 0.001f), DDP_END)),
        0.4f);
}

static void add_named(ddp_chain_t *c, const char *name, ddp_layer_t *l)
{
    ddp_chain_add(c, ddp_layer_set_name(l, name));
}

/* Layers have torchvision's names, so that its weights can be loaded.  Numbers
 * are channels: of the input and, where modules of a kind differ, of the pool's
 * branch or inside the 7x7 branches. */
static ddp_chain_t *inception_v3_new(const struct ddp_model_options *o,
                                     const void *kind)
{
    ddp_chain_t *c = ddp_chain_new(
        conv("Conv2d_1a_3x3", o->in_channels, 32, half),
        conv("Conv2d_2a_3x3", 32, 32, valid),
        conv("Conv2d_2b_3x3", 32, 64, three), half_pool(),
        conv("Conv2d_3b_1x1", 64, 80, one),
        conv("Conv2d_4a_3x3", 80, 192, valid), half_pool(), DDP_END);

    (void)kind;
    add_named(c, "Mixed_5b", module_a(192, 32));
    add_named(c, "Mixed_5c", module_a(256, 64));
    add_named(c, "Mixed_5d", module_a(288, 64));
    add_named(c, "Mixed_6a", module_b(288));
    add_named(c, "Mixed_6b", module_c(768, 128));
    add_named(c, "Mixed_6c", module_c(768, 160));
    add_named(c, "Mixed_6d", module_c(768, 160));
    add_named(c, "Mixed_6e", module_c(768, 192));
    if (!o->no_aux)
        add_named(c, "AuxLogits", aux(768, o->classes));
    add_named(c, "Mixed_7a", module_d(768));
    add_named(c, "Mixed_7b", module_e(1280));
    add_named(c, "Mixed_7c", module_e(2048));
    ddp_chain_add(c, ddp_global_mean_pool_new());
    ddp_chain_add(c, ddp_dropout_new(ddp__rate(o->dropout, 0.5f)));
    ddp_chain_add(c, dense(2048, o->classes, 0.1f));
    return ddp__chain_done(c);
}

const struct ddp__model ddp__inception_v3_models[] = {
    {"inception_v3", inception_v3_new, NULL, {299, 342, DDP_BILINEAR, true}},
    {0},
};
