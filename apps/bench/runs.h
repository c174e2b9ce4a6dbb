/* runs.h - short runs of training that other benchmarks are made of
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_RUNS_H
#define BENCH_RUNS_H

#include "ddp.h"
#include "settings.h"

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

/* What bench_speed() measures. */
struct bench_speed {
    double img_per_s, flops_per_img; /* flops as peak_share counts */
    int64_t batch;                   /* images of a step */
};

/* Train by the settings for at most so many seconds, but one step that counts;
 * 0, or one of the library's codes after a message. */
int bench_speed(const struct bench_settings *s, double seconds,
                struct bench_speed *out);

#endif
