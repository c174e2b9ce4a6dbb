/* rows.h - rows of options that several benchmarks have
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "settings.h"

#define OPT_STRUCT struct bench_settings
#include "common/opt_rows.h"

#define NETWORK_ROWS(preset_)                                                  \
    TEXT("model", model, "NAME", preset_, "network"),                          \
        INT("img-size", img_size, "224", 1, 4096,                              \
            "side of the square images, in pixels"),                           \
        INT("classes", classes, "1000", 2, 1 << 24, "outputs of the network",  \
            .alias = "num-classes")

#define SHAPE_ROWS                                                             \
    FLAG("small-stem", small_stem,                                             \
         "begin with a 3x3 convolution and no pooling"),                       \
        INT("width", width, "0", 0, 4096,                                      \
            "channels of a ResNet's first stage; 0 means 64")

#define DTYPE_ROW(preset_, words_)                                             \
    CHOICE("dtype", dtype, "TYPE", preset_, words_, "type of the activations")

#define SUB_BATCH_ROW(preset_)                                                 \
    INT("sub-batch", sub_batch, preset_, 1, 1 << 20,                           \
        "images processed together")

#endif
