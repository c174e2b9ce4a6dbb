/* options.h - the options of all commands, and their values
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/opt.h"

/* The values of all options; each command has some of them. */
struct settings {
    /* data */
    char *data, *val_data;
    int split;
    int64_t img_size, val_size, resize, shift, max_pixels;
    double area[2], ratio[2], hflip, vflip, jitter[4], jitter_share;
    double grayscale, blur, crop_pct;
    double erase, mean[3], std[3], max_bad, val_split;
    int augment;
    char *policy;
    char *class_subset;
    int64_t aug_repeats, ra_magnitude, augmix_severity;
    int interpolation, train_filter;
    int64_t erase_count;
    int erase_fill; /* enum ddp_erase */
    bool upright, class_numbers;
    /* network */
    char *model, *weights;
    int64_t classes, width, whiten;
    int hidden[OPT_WIDTHS_MAX + 1];
    bool small_stem, no_aux, zero_init_residual, partial_weights;
    int dtype, tta, wire, loss;
    /* training */
    int64_t epochs, steps, batch, batch_per_device, world_size, sub_batch;
    int64_t lanes, seed, ema_steps, lookahead;
    int opt; /* enum ddp_optimizer_kind */
    int sched, clip_mode;
    double lr, lr_base, lr_base_size, momentum, betas[2], eps, weight_decay;
    double clip_grad, smoothing, drop, drop_path, ema_decay;
    double distill_weight, distill_temperature;
    double focal_gamma, focal_alpha, bce_threshold, mixup, cutmix, mixup_prob,
        mixup_switch_prob;
    int64_t mixup_off_epoch;
    int64_t max_nan_steps;
    double warmup_epochs, warmup_lr, decay_epochs, decay_rate, min_lr;
    double warmup_decay, power, stretch;
    double noise[2], noise_limit, noise_deviation;
    double plateau_threshold, max_momentum, base_momentum;
    int64_t plateau_patience, cooldown;
    int warmup_method, milestones[OPT_WIDTHS_MAX + 1];
    bool warmup_prefix, warmup_inside;
    char *freeze, *freeze_to, *group_lr, *group_decay, *class_weights,
        *pos_weight;
    char *teacher;
    double norm_decay, bias_decay, layer_decay;
    bool head_only, freeze_bn, ema, ema_warmup;
    int64_t eval_steps, patience;
    bool decay_all, drop_last, shard_optimizer, sync_bn;
    /* output */
    char *output;
    int64_t eval_every, log_every, trace;
    char *config;
    char *times;
    bool dry_run, find_lr;
    int64_t find_lr_steps;
    char *resume, *resume_with, *ckpt_every, *graph;
    int64_t keep_last, save_every, ckpt_failures;
    bool no_val, plot, quiet, verbose, weight_norm;
    char *log, *svg, *png;
    int64_t log_histograms, log_images;
    double time_limit;
    int64_t grace, peer_timeout;
    int64_t storage_timeout, storage_requests;
    char *cache_dir, *cache, *data_config;
    double cache_size;
    int64_t shard_samples, quality;
    int pack_filter; /* enum ddp_interpolation */
    /* predictions */
    char **input, *list, *class_map, *per_class, *predictions;
    int64_t topk;
    int format;
    /* convert */
    char *strip_prefix, *add_prefix, *drop_names;
    /* devices */
    int64_t workers;
    int devices; /* of all ranks */
    int device, backend;
    /* data synth */
    int64_t train_count, val_count, size;
};

/* Rows of the tables of words. */
enum {
    SCHED_CONSTANT,
    SCHED_STEP,
    SCHED_COSINE,
    SCHED_LINEAR,
    SCHED_ONECYCLE,
    SCHED_MULTISTEP,
    SCHED_EXPONENTIAL,
    SCHED_POLYNOMIAL,
    SCHED_RESTARTS,
    SCHED_PLATEAU
};
enum { WARMUP_LINEAR, WARMUP_CONSTANT };
enum { CLIP_NORM, CLIP_VALUE, CLIP_AGC };

/* Words of --loss. */
enum { LOSS_CE, LOSS_BCE, LOSS_FOCAL };
enum { DEVICE_AUTO, DEVICE_CPU };
enum { FILTER_MODEL, FILTER_BILINEAR, FILTER_BICUBIC };
/* Beyond the first, enum ddp_interpolation. */
enum { TRAIN_FILTER_SAME };
enum { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSONL };

extern const struct opt_command train_command, eval_command, infer_command;
extern const struct opt_command export_command, inspect_command;
extern const struct opt_command doctor_command;

#endif
