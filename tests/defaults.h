/* defaults.h - defaults of options, as initialisers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     &(struct ddp_train_config){TRAIN_DEFAULTS, .batch = 16}
 *
 * test_config.c checks that ddp_..._init() sets the documented ones.
 */
#ifndef DEFAULTS_H
#define DEFAULTS_H

#include "layers/defaults.h"

#define START_DEFAULTS                                                         \
    .struct_size = sizeof(struct ddp_config), .cpus = DDP_ALL,                 \
    .gpus = DDP_ALL, .peer_timeout = 300

#define IMAGE_DEFAULTS                                                         \
    .struct_size = sizeof(struct ddp_image_options), .min_area = 0.08f,        \
    .shift = 4, .mean = {0.485f, 0.456f, 0.406f},                              \
    .std = {0.229f, 0.224f, 0.225f}, .max_pixels = 178956970,                  \
    .max_bad = 0.001, .max_area = 1, .ratio = {3.0 / 4.0, 4.0 / 3.0},          \
    .jitter_share = 1, .horizontal_flip = 0.5f, .erase_count = 1

#define STORAGE_DEFAULTS                                                       \
    .struct_size = sizeof(struct ddp_storage_config), .timeout = 300,          \
    .requests = 256, .cache_size = (int64_t)50 << 30

#define TRAIN_DEFAULTS                                                         \
    .struct_size = sizeof(struct ddp_train_config), .sub_batch = 32,           \
    .epochs = 1, .run_ahead = 2, .max_nan_steps = 10, .checkpoint.keep = 3,    \
    .optimizer.lr = -1, .focal_gamma = 2, .focal_alpha = 0.25f, .mix_prob = 1, \
    .mix_switch_prob = 0.5, .distill_weight = 0.5, .distill_temperature = 1

#define SAVE_DEFAULTS .struct_size = sizeof(struct ddp_save_options)
#define LOAD_DEFAULTS .struct_size = sizeof(struct ddp_load_options)
#define CONVERT_DEFAULTS .struct_size = sizeof(struct ddp_convert_options)
#define COMPILED_DEFAULTS .struct_size = sizeof(struct ddp_compiled_options)
#define RESUME_DEFAULTS .struct_size = sizeof(struct ddp_resume_options)
#define EVALUATE_DEFAULTS                                                      \
    .struct_size = sizeof(struct ddp_evaluate_config), .sub_batch = 32,        \
    .focal_gamma = 2, .focal_alpha = 0.25f

#define MODEL_DEFAULTS                                                         \
    .struct_size = sizeof(struct ddp_model_options), .classes = 1000,          \
    .in_channels = 3, .width = 64, .dropout = DDP_MODEL_RATE,                  \
    .stochastic_depth = DDP_MODEL_RATE

#define DENSE_DEFAULTS DDP__DENSE_DEFAULTS
#define CONV_DEFAULTS DDP__CONV_DEFAULTS
#define NORM_DEFAULTS DDP__NORM_DEFAULTS
#define POOL_DEFAULTS DDP__POOL_DEFAULTS

#endif
