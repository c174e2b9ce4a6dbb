/* sweep.h - "ddp-bench sweep": the speed of training over sizes of images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_SWEEP_H
#define BENCH_SWEEP_H

#include "common/opt.h"
#include "settings.h"

extern const struct opt_command bench_sweep_command;

/* Print the tables; returns the program's exit code. */
int bench_sweep_run(struct opts *o, struct bench_settings *s);

#endif
