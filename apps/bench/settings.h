/* settings.h - options of the benchmarks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_SETTINGS_H
#define BENCH_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/opt.h"

/* Words of --dtype and --input. */
static const char *const dtypes[] = {"f32", "bf16", "f16", NULL};
static const char *const inputs[] = {"u8", "f32", NULL};

struct bench_settings {
    char *model, *data, *policy;
    int64_t img_size, classes, width, batch, sub_batch, lanes, steps, skip,
        workers, peak;
    int64_t threads, rounds;
    double seconds, point_seconds;
    int sizes[OPT_WIDTHS_MAX + 1], sub_batches[OPT_WIDTHS_MAX + 1];
    int counts[OPT_WIDTHS_MAX + 1]; /* of workers */
    char **models, *output, *peer, *trace;
    bool small_stem, inspect, table, ema, shard;
    int dtype, input, backend, split, augment, gpu;
};

#endif
