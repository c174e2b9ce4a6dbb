/* operations.h - "ddp-bench roof": what each operation takes, and could take
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_OPERATIONS_H
#define BENCH_OPERATIONS_H

#include "common/opt.h"
#include "settings.h"

extern const struct opt_command bench_roof_command;

/* Print the table; returns the program's exit code. */
int bench_roof_run(struct opts *o, struct bench_settings *s);

#endif
