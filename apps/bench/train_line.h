/* train_line.h - the line of JSON that "ddp-bench train" prints
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_TRAIN_LINE_H
#define BENCH_TRAIN_LINE_H

#include "bench.h"

/* st: of the run. */
void train_line_print(const struct bench *b, const struct bench_settings *s,
                      const struct ddp_stats *st);

#endif
