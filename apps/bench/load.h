/* load.h - "ddp-bench load": reading and decoding images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "common/opt.h"
#include "settings.h"

extern const struct opt_command bench_load_command;

/* Print one line of JSON; returns the program's exit code. */
int bench_load_run(struct opts *o, struct bench_settings *s);

#endif
