/* bench.h - what the files of the program bench share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_H
#define BENCH_H

#include "ddp.h"
#include "common/opt.h"

struct bench_settings {
    char *model, *data;
    int64_t img_size, classes, width, batch, sub_batch, lanes, steps, skip,
        workers, peak;
    int64_t threads;
    double seconds;
    bool small_stem, inspect;
    int dtype, input, backend, split, augment;
};

extern const struct opt_command bench_train_command, bench_load_command;

/* Each prints one line of JSON and returns the program's exit code. */
int bench_train_run(struct opts *o, struct bench_settings *s);
int bench_load_run(struct opts *o, struct bench_settings *s);

/* The median; sorts v.  0 of nothing. */
double bench_median(double *v, int64_t n);

/* Largest memory this process has had. */
double bench_peak_rss_mib(void);

#endif
