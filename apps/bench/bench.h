/* bench.h - a benchmark of training: its network, images and steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_H
#define BENCH_H

#include "ddp.h"
#include "parts.h"
#include "peak.h"
#include "pool.h"
#include "roof.h"
#include "settings.h"

struct bench {
    ddp_t *ddp;
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
    struct pool pool;
    struct peak peak;
    struct roof roof; /* flops 0: no GPU, or an unknown one */
    struct roof_time at_least;
    char peak_base[200];
    double flops; /* of training on one image, as peak_share counts */
    bool first;
    double last, *step_s;  /* owned */
    double begin, start_s; /* until the end of the first step */
    int64_t done, skip, want, batch;
    int64_t drained; /* steps between `before` and those that count */
    struct ddp_stats before;
    struct parts parts; /* of the steps that count */
    char *trace;        /* its file, or NULL; owned */
    double data_share, loss;
    double until;    /* of app_now(): stop after the next step that counts; 0:
                        after all */
    double kernel_s; /* of a step, in kernels of all GPUs; below 0: unknown */
    bool inspect;
};

enum ddp_dtype bench_dtype(const struct bench_settings *s);

/* A network by the settings; NULL: ddp_errmsg() says why. */
ddp_chain_t *bench_model(const struct bench_settings *s);

/* These return an exit code after a message, or OPTS_GO. */

/* Network, images and devices; lanes and batch of the settings. */
int bench_open(struct bench *b, struct bench_settings *s);

/* GPUs' figures instead of those of the cores, and how fast the network could
 * be on them; its work.  Other ranks are as fast as this one. */
int bench_count_work(struct bench *b, const struct bench_settings *s);

/* The data set is as long as the run, so that all steps belong to one epoch
 * and no sample is used twice. */
int bench_make_trainer(struct bench *b, const struct bench_settings *s);

/* End what bench_open() began, or all. */
void bench_close_model(struct bench *b);
void bench_close(struct bench *b);

#endif
