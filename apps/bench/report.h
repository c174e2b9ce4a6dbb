/* report.h - "ddp-bench report": the speed of usual networks, as a table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "common/opt.h"
#include "settings.h"

extern const struct opt_command bench_report_command;

/* Print the table; returns the program's exit code. */
int bench_report_run(struct opts *o, struct bench_settings *s);

#endif
