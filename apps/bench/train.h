/* train.h - "ddp-bench train": images generated in advance
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_TRAIN_H
#define BENCH_TRAIN_H

#include "common/opt.h"
#include "ddp.h"
#include "settings.h"

extern const struct opt_command bench_train_command;

struct profile;

/* Steps that were profiled. */
struct bench_steps {
    double step_s;         /* median */
    struct ddp_stats sums; /* of all */
};

/* Train by the settings and measure each operation on the GPUs, or without
 * `gpu` on CPU workers.  If there is no GPU, *gpu and *all are left as they are
 * and p empty; NULL for `all`: it is not asked for.  A code of the program. */
int bench_profile(const struct bench_settings *s, struct profile *p,
                  struct ddp_gpu_info *gpu, struct bench_steps *all);

/* A network by the settings; NULL: ddp_errmsg() says why. */
ddp_chain_t *bench_model(const struct bench_settings *s);

enum ddp_dtype bench_dtype(const struct bench_settings *s);

/* What bench_speed() measures. */
struct bench_speed {
    double img_per_s, flops_per_img; /* flops as peak_share counts */
    int64_t batch;                   /* images of a step */
};

/* Train by the settings for at most so many seconds, but one step that counts;
 * 0, or one of the library's codes after a message. */
int bench_speed(const struct bench_settings *s, double seconds,
                struct bench_speed *out);

/* Print one line of JSON; returns the program's exit code. */
int bench_train_run(struct opts *o, struct bench_settings *s);

#endif
