/* layer_cases.c - chains that oracle_layers.py has too, under the same names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include "defaults.h"
#include "layer_cases.h"

#define CHAIN(...) ddp_chain_new(__VA_ARGS__, DDP_END)
#define PARALLEL(join, ...) ddp_parallel_new(join, __VA_ARGS__, DDP_END)
#define CONV(in, out, k, ...)                                                  \
    ddp_conv_new(in, out, k,                                                   \
                 &(struct ddp_conv_options){CONV_DEFAULTS, __VA_ARGS__})
#define NORM_CONV(in, out, k, ...)                                             \
    CONV(in, out, k, .no_bias = true, __VA_ARGS__)
#define BN(c) ddp_batch_norm_new(c, NULL)
#define DENSE(in, out) ddp_dense_new(in, out, NULL)
#define SKIP(branch) ddp_skip_new(branch, DDP_END)
#define RELU ddp_relu_new()
#define ACT(act) ddp_act_new(act)
#define MAX_POOL(k, ...)                                                       \
    ddp_max_pool_new(k, &(struct ddp_pool_options){POOL_DEFAULTS, __VA_ARGS__})
#define MEAN_POOL(k, ...)                                                      \
    ddp_mean_pool_new(k, &(struct ddp_pool_options){POOL_DEFAULTS, __VA_ARGS__})
#define NOTHING ddp_chain_new(DDP_END)

static ddp_layer_t *residual(int c)
{
    return CHAIN(NORM_CONV(c, c, 3, .pad = 1), BN(c), RELU,
                 NORM_CONV(c, c, 3, .pad = 1), BN(c));
}

static ddp_layer_t *gate(int c, int squeezed)
{
    return CHAIN(ddp_global_mean_pool_new(), CONV(c, squeezed, 1), RELU,
                 CONV(squeezed, c, 1), ACT(DDP_SIGMOID));
}

/* X (name, chain) */
#define CASES(X)                                                               \
    X(dense, CHAIN(DENSE(7, 5)))                                               \
    X(dense_no_bias,                                                           \
      CHAIN(ddp_dense_new(                                                     \
          7, 5,                                                                \
          &(struct ddp_dense_options){DENSE_DEFAULTS, .no_bias = true})))      \
    X(dense_alone, DENSE(7, 5))                                                \
    X(dense_twice, CHAIN(DENSE(2, 2), DENSE(2, 2)))                            \
    X(dense_wide, CHAIN(DENSE(300, 37)))                                       \
    X(conv, CHAIN(CONV(4, 8, 3, .pad = 1)))                                    \
    X(conv_alone, ddp_conv_new(4, 8, 3, NULL))                                 \
    X(conv_no_bias, CHAIN(NORM_CONV(4, 8, 3)))                                 \
    X(conv_1x1, CHAIN(CONV(4, 6, 1)))                                          \
    X(conv_1x1_stride, CHAIN(CONV(4, 6, 1, .stride = 2)))                      \
    X(conv_odd, CHAIN(CONV(17, 19, 3, .pad = 1)))                              \
    X(conv_stride, CHAIN(CONV(4, 8, 3, .stride = 2, .pad = 1)))                \
    X(conv_strides, CHAIN(CONV(4, 8, 3, .stride = 3, .stride_w = 2)))          \
    X(conv_stem, CHAIN(NORM_CONV(3, 16, 7, .stride = 2, .pad = 3)))            \
    X(conv_patch, CHAIN(CONV(3, 6, 4, .stride = 4)))                           \
    X(conv_whole, CHAIN(CONV(4, 8, 9, .kernel_w = 7)))                         \
    X(conv_pad_w, CHAIN(CONV(4, 8, 3, .pad_w = 2)))                            \
    X(conv_pads, CHAIN(CONV(4, 8, 3, .pads = {0, 1, 2, 3})))                   \
    X(conv_dilation, CHAIN(CONV(4, 8, 3, .pad = 2, .dilation = 2)))            \
    X(conv_dilations,                                                          \
      CHAIN(CONV(4, 8, 3, .pad = 2, .dilation = 3, .dilation_w = 2)))          \
    X(conv_groups, CHAIN(CONV(8, 12, 3, .pad = 1, .groups = 4)))               \
    X(depthwise, CHAIN(CONV(8, 8, 3, .pad = 1, .groups = 8)))                  \
    X(depthwise_wide,                                                          \
      CHAIN(CONV(4, 8, 5, .pad = 2, .stride = 2, .groups = 4)))                \
    X(conv_rect, CHAIN(CONV(4, 8, 1, .kernel_w = 7, .pad_w = 3),               \
                       CONV(8, 4, 7, .kernel_w = 1, .pad = 3, .pad_w = 0)))    \
    X(conv_all,                                                                \
      CHAIN(CONV(4, 6, 3, .kernel_w = 2, .stride = 2, .stride_w = 1,           \
                 .dilation_w = 3, .groups = 2, .pads = {1, 0, 2, 3})))         \
    X(bn, CHAIN(BN(4)))                                                        \
    X(bn_relu, CHAIN(BN(4), RELU))                                             \
    X(bn_relu6, CHAIN(BN(4), ACT(DDP_RELU6)))                                  \
    X(bn_tanh, CHAIN(BN(4), ACT(DDP_TANH)))                                    \
    X(bn_options, CHAIN(ddp_batch_norm_new(                                    \
                      4, &(struct ddp_batch_norm_options){                     \
                             NORM_DEFAULTS, .eps = 1e-2f, .momentum = 0.3f}))) \
    X(bn_vector, CHAIN(ddp_dense_new(7, 6,                                     \
                                     &(struct ddp_dense_options){              \
                                         DENSE_DEFAULTS, .no_bias = true}),    \
                       BN(6), RELU))                                           \
    X(bn_sub, CHAIN(NORM_CONV(4, 8, 3), BN(8), RELU))                          \
    X(bn_twice,                                                                \
      CHAIN(NORM_CONV(4, 8, 3), BN(8), RELU, NORM_CONV(8, 6, 1), BN(6)))       \
    X(max_pool, CHAIN(ddp_max_pool_new(2, NULL)))                              \
    X(max_pool_overlap, CHAIN(MAX_POOL(3, .stride = 2, .pad = 1)))             \
    X(max_pool_same, CHAIN(MAX_POOL(3, .stride = 1, .pad = 1)))                \
    X(max_pool_ceil, CHAIN(MAX_POOL(3, .stride = 2, .ceil_mode = true)))       \
    X(max_pool_ceil_drop,                                                      \
      CHAIN(MAX_POOL(2, .stride = 3, .pad = 1, .ceil_mode = true)))            \
    X(max_pool_rect,                                                           \
      CHAIN(MAX_POOL(3, .kernel_w = 2, .stride = 1, .stride_w = 2, .pad = 1))) \
    X(max_pool_large,                                                          \
      CHAIN(MAX_POOL(18, .kernel_w = 17, .stride = 3, .stride_w = 2)))         \
    X(mean_pool, CHAIN(ddp_mean_pool_new(2, NULL)))                            \
    X(mean_pool_pad, CHAIN(MEAN_POOL(3, .stride = 1, .pad = 1)))               \
    X(mean_pool_inside,                                                        \
      CHAIN(MEAN_POOL(3, .stride = 1, .pad = 1, .exclude_pad = true)))         \
    X(mean_pool_ceil,                                                          \
      CHAIN(MEAN_POOL(3, .stride = 2, .pad = 1, .ceil_mode = true)))           \
    X(mean_pool_ceil_inside,                                                   \
      CHAIN(MEAN_POOL(3, .stride = 2, .pad = 1, .ceil_mode = true,             \
                      .exclude_pad = true)))                                   \
    X(mean_pool_ceil_drop,                                                     \
      CHAIN(MEAN_POOL(2, .stride = 3, .pad = 1, .ceil_mode = true)))           \
    X(mean_pool_rect,                                                          \
      CHAIN(MEAN_POOL(2, .kernel_w = 3, .stride = 2, .stride_w = 1)))          \
    X(adaptive, CHAIN(ddp_adaptive_mean_pool_new(4, 3)))                       \
    X(adaptive_up, CHAIN(ddp_adaptive_mean_pool_new(11, 5)))                   \
    X(global_mean, CHAIN(ddp_global_mean_pool_new(), DENSE(4, 3)))             \
    X(flatten, CHAIN(CONV(4, 3, 3), ddp_flatten_new(), DENSE(105, 6)))         \
    X(flatten_chw, CHAIN(CONV(4, 3, 3), ddp_flatten_new(),                     \
                         ddp_dense_new(105, 6,                                 \
                                       &(struct ddp_dense_options){            \
                                           DENSE_DEFAULTS, .pixels = 35})))    \
    X(flatten_first, CHAIN(ddp_flatten_new(), DENSE(252, 6)))                  \
    X(nothing, NOTHING)                                                        \
    X(skip_conv, CHAIN(SKIP(CONV(4, 4, 3, .pad = 1))))                         \
    X(skip_conv_relu, CHAIN(SKIP(CONV(4, 4, 3, .pad = 1)), RELU))              \
    X(skip_bn, CHAIN(SKIP(residual(4))))                                       \
    X(skip_bn_relu, CHAIN(CONV(4, 4, 1), SKIP(residual(4)), RELU))             \
    X(skip_bn_relu6, CHAIN(SKIP(residual(4)), ACT(DDP_RELU6)))                 \
    X(skip_bn_silu, CHAIN(SKIP(residual(4)), ACT(DDP_SILU)))                   \
    X(skip_bn_alone, CHAIN(SKIP(BN(4)), RELU))                                 \
    X(skip_projection,                                                         \
      CHAIN(                                                                   \
          ddp_skip_new(CHAIN(NORM_CONV(4, 6, 3, .pad = 1, .stride = 2), BN(6), \
                             RELU, NORM_CONV(6, 6, 3, .pad = 1), BN(6)),       \
                       CHAIN(NORM_CONV(4, 6, 1, .stride = 2), BN(6))),         \
          RELU))                                                               \
    X(skip_projection_plain,                                                   \
      CHAIN(ddp_skip_new(CONV(4, 6, 3), CONV(4, 6, 3)), CONV(6, 2, 1)))        \
    X(skip_conv_1x1,                                                           \
      CHAIN(ddp_skip_new(CONV(4, 6, 3, .pad = 1), CONV(4, 6, 1)),              \
            ddp_skip_new(CONV(6, 2, 1), CONV(6, 2, 3, .pad = 1))))             \
    X(skip_conv_1x1_pad,                                                       \
      CHAIN(ddp_skip_new(CONV(4, 6, 3, .pad = 2), CONV(4, 6, 1, .pad = 1)),    \
            ddp_skip_new(CONV(6, 2, 1, .pad = 1), CONV(6, 2, 3, .pad = 2))))   \
    X(skip_nested, CHAIN(SKIP(CHAIN(SKIP(CONV(4, 4, 3, .pad = 1)), RELU,       \
                                    SKIP(residual(4)), RELU)),                 \
                         RELU))                                                \
    X(skip_skip, CHAIN(SKIP(SKIP(SKIP(CONV(4, 4, 1))))))                       \
    X(skip_nothing, CHAIN(SKIP(NOTHING)))                                      \
    X(skip_act, CHAIN(SKIP(ACT(DDP_TANH))))                                    \
    X(skip_shortcut_act, CHAIN(ddp_skip_new(CONV(4, 4, 1), ACT(DDP_TANH))))    \
    X(skip_dense, CHAIN(SKIP(CHAIN(DENSE(7, 7), ACT(DDP_GELU))), DENSE(7, 3))) \
    X(concat, CHAIN(PARALLEL(DDP_CONCAT, CONV(4, 3, 1),                        \
                             CHAIN(CONV(4, 5, 3, .pad = 1), RELU),             \
                             MAX_POOL(3, .stride = 1, .pad = 1)),              \
                    RELU))                                                     \
    X(concat_first, CHAIN(PARALLEL(DDP_CONCAT, CONV(4, 3, 1), CONV(4, 2, 1)),  \
                          CONV(5, 3, 3)))                                      \
    X(concat_one, CHAIN(PARALLEL(DDP_CONCAT, CONV(4, 3, 1)), RELU))            \
    X(concat_identity, CHAIN(CONV(4, 4, 1), PARALLEL(DDP_CONCAT, NOTHING,      \
                                                     NOTHING, ACT(DDP_TANH)))) \
    X(add, CHAIN(PARALLEL(DDP_ADD, CONV(4, 4, 1), CONV(4, 4, 3, .pad = 1),     \
                          ACT(DDP_IDENTITY)),                                  \
                 RELU))                                                        \
    X(add_first,                                                               \
      CHAIN(PARALLEL(DDP_ADD, CONV(4, 3, 1), CONV(4, 3, 1)), CONV(3, 3, 3)))   \
    X(add_one,                                                                 \
      CHAIN(CONV(4, 3, 1), PARALLEL(DDP_ADD, ACT(DDP_TANH)), CONV(3, 2, 1)))   \
    X(add_identities,                                                          \
      CHAIN(CONV(4, 4, 1), PARALLEL(DDP_ADD, NOTHING, NOTHING, NOTHING)))      \
    X(parallel_nested,                                                         \
      CHAIN(PARALLEL(DDP_CONCAT,                                               \
                     CHAIN(NORM_CONV(4, 4, 1), BN(4), RELU,                    \
                           PARALLEL(DDP_ADD, CONV(4, 3, 1),                    \
                                    CONV(4, 3, 3, .pad = 1))),                 \
                     PARALLEL(DDP_CONCAT, CONV(4, 2, 1),                       \
                              MEAN_POOL(3, .stride = 1, .pad = 1),             \
                              SKIP(CONV(4, 4, 1)))),                           \
            CONV(13, 2, 1)))                                                   \
    X(scale,                                                                   \
      CHAIN(CONV(4, 6, 3, .pad = 1), ddp_channel_scale_new(gate(6, 3))))       \
    X(scale_first, CHAIN(ddp_channel_scale_new(gate(4, 2)), CONV(4, 3, 1)))    \
    X(scale_dense,                                                             \
      CHAIN(CONV(4, 6, 1), RELU,                                               \
            ddp_channel_scale_new(CHAIN(ddp_global_mean_pool_new(),            \
                                        DENSE(6, 6), ACT(DDP_HARDSIGMOID))),   \
            CONV(6, 2, 1)))                                                    \
    X(scale_skip, CHAIN(SKIP(CHAIN(NORM_CONV(4, 4, 3, .pad = 1), BN(4),        \
                                   ddp_channel_scale_new(gate(4, 2)))),        \
                        RELU))                                                 \
    X(scale_silu, CHAIN(NORM_CONV(4, 6, 3, .pad = 1), BN(6), ACT(DDP_SILU),    \
                        ddp_channel_scale_new(gate(6, 3)), CONV(6, 2, 1)))     \
    X(scale_hardswish,                                                         \
      CHAIN(NORM_CONV(4, 6, 3, .pad = 1), BN(6), ACT(DDP_HARDSWISH),           \
            ddp_channel_scale_new(gate(6, 3)), CONV(6, 2, 1)))                 \
    X(scale_shared,                                                            \
      CHAIN(NORM_CONV(4, 6, 3, .pad = 1), BN(6), ACT(DDP_SILU),                \
            SKIP(ddp_channel_scale_new(gate(6, 3))), CONV(6, 2, 1)))           \
    X(nested,                                                                  \
      CHAIN(CHAIN(CONV(4, 6, 3), CHAIN(RELU)), CHAIN(CHAIN(CONV(6, 3, 1)))))   \
    X(ends_nested, CHAIN(CHAIN(NORM_CONV(4, 6, 3), BN(6)), RELU))

/* Each activation alone, where a layer can take it in, where it cannot since
 * it is in a chain of its own, and after a dense layer. */
#define ACT_CASES(X)                                                           \
    X(act, CHAIN(ACT(a)))                                                      \
    X(conv, CHAIN(CONV(4, 6, 3), ACT(a), CONV(6, 3, 1)))                       \
    X(conv_apart, CHAIN(CONV(4, 6, 3), CHAIN(ACT(a))))                         \
    X(norm, CHAIN(NORM_CONV(4, 6, 3), BN(6), ACT(a), CONV(6, 3, 1)))           \
    X(dense, CHAIN(DENSE(7, 5), ACT(a), DENSE(5, 3)))

#define X(name, chain)                                                         \
    static ddp_chain_t *make_##name(void)                                      \
    {                                                                          \
        return chain;                                                          \
    }
CASES(X)
#undef X

#define X(name, chain)                                                         \
    static ddp_chain_t *make_##name##_with(enum ddp_act a)                     \
    {                                                                          \
        return chain;                                                          \
    }
ACT_CASES(X)
#undef X

static const struct {
    const char *name;
    ddp_chain_t *(*make)(void);
} cases[] = {
#define X(name, chain) {#name, make_##name},
    CASES(X)
#undef X
};

static const struct {
    const char *name;
    ddp_chain_t *(*make)(enum ddp_act a);
} act_cases[] = {
#define X(name, chain) {#name, make_##name##_with},
    ACT_CASES(X)
#undef X
};

const char *const act_names[DDP_ACT_COUNT] = {
    [DDP_IDENTITY] = "identity",
    [DDP_RELU] = "relu",
    [DDP_RELU6] = "relu6",
    [DDP_SILU] = "silu",
    [DDP_SIGMOID] = "sigmoid",
    [DDP_TANH] = "tanh",
    [DDP_GELU] = "gelu",
    [DDP_HARDSWISH] = "hardswish",
    [DDP_HARDSIGMOID] = "hardsigmoid",
};

bool layer_case(int i, char name[64], ddp_chain_t **chain)
{
    int plain = (int)(sizeof(cases) / sizeof(cases[0]));
    int kinds = (int)(sizeof(act_cases) / sizeof(act_cases[0])), act, kind;

    if (i < plain) {
        snprintf(name, 64, "%s", cases[i].name);
        *chain = cases[i].make();
        return true;
    }
    act = (i - plain) / kinds;
    kind = (i - plain) % kinds;
    if (act >= DDP_ACT_COUNT)
        return false;
    snprintf(name, 64, "%s_%s", act_cases[kind].name, act_names[act]);
    *chain = act_cases[kind].make((enum ddp_act)act);
    return true;
}
