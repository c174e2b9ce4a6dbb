/* calibrate.h - "ddp-bench calibrate": times of operations for ddp-predict
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_CALIBRATE_H
#define BENCH_CALIBRATE_H

#include "common/opt.h"
#include "settings.h"

extern const struct opt_command bench_calibrate_command;

/* Append to a file, and print a line of JSON per number of workers; returns the
 * program's exit code. */
int bench_calibrate_run(struct opts *o, struct bench_settings *s);

#endif
