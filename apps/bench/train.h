/* train.h - "ddp-bench train": images generated in advance
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_TRAIN_H
#define BENCH_TRAIN_H

#include "common/opt.h"
#include "settings.h"

extern const struct opt_command bench_train_command;

/* Print one line of JSON, or a table; returns the program's exit code. */
int bench_train_run(struct opts *o, struct bench_settings *s);

#endif
