/* settings.h - options of both benchmarks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_SETTINGS_H
#define BENCH_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_settings {
    char *model, *data;
    int64_t img_size, classes, width, batch, sub_batch, lanes, steps, skip,
        workers, peak;
    int64_t threads;
    double seconds;
    bool small_stem, inspect;
    int dtype, input, backend, split, augment, gpu;
};

#endif
