/* options_rows.h - rows of options that several commands have
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_ROWS_H
#define OPTIONS_ROWS_H

#include "options.h"

#define OPT_STRUCT struct settings
#include "common/opt_rows.h"

static const char *const dtypes[] = {"f32", "bf16", "f16", NULL};

static const struct opt_word dtype_words[] = {
    {"float32", "f32"}, {"bfloat16", "bf16"}, {"float16", "f16"}, {NULL, NULL}};
static const char *const ttas[] = {"none", "flip", NULL};
static const struct opt_word tta_words[] = {{"0", "none"}, {NULL, NULL}};

#define DATA_ROW                                                               \
    TEXT("data", data, "DIR", NULL,                                            \
         "images: ImageNet in Kaggle's layout, CIFAR's or MNIST's files, or "  \
         "one folder per class in train/ and val/ (or test/); a folder, or "   \
         "s3://BUCKET/FOLDER, http:// or https://; or NAME.csv, which lists "  \
         "path,label; or tar files, such as 't-{00..99}.tar'",                 \
         .alias = "data-dir"),                                                 \
        TEXT("data-config", data_config, "FILE", NULL,                         \
             "a Data.toml (of DataSets.jl), in which --data is a name"),       \
        INT("storage-timeout", storage_timeout, "300", 1, 86400,               \
            "seconds to try for while the server of --data does not answer"),  \
        INT("storage-requests", storage_requests, "256", 1, 1024,              \
            "images that are fetched from the server at a time, at most; 64 "  \
            "at first, more if workers wait for them"),                        \
        TEXT("cache-dir", cache_dir, "DIR", NULL,                              \
             "folder for copies of what is read from s3://; several "          \
             "processes may share it"),                                        \
        NUM("cache-size", cache_size, "50", 1e-6, 1e6,                         \
            "gigabytes in --cache-dir, before copies that were not used for "  \
            "long go")

#define MAX_PIXELS_ROW                                                         \
    INT("max-pixels", max_pixels, "178956970", 1, 1e12,                        \
        "images with more pixels count as unreadable")

#define TTA_ROW                                                                \
    CHOICE("tta", tta, "HOW", "none", ttas,                                    \
           "flip: average the outputs for each image and its mirror image; "   \
           "twice the work",                                                   \
           .also = tta_words)

#define TIMES_ROW                                                              \
    TEXT("times", times, "FILE", NULL,                                         \
         "measured times of operations, by ddp-bench calibrate: the plan has " \
         "the time of a step [that of this machine, if there is one]",         \
         .of_run = true)

#define SYNC_BN_ROW                                                            \
    FLAG("sync-bn", sync_bn,                                                   \
         "batch norm has the statistics of all images of a step, not of a "    \
         "sub-batch; each sub-batch is a lane then, and all are in memory",    \
         .alias = "sync-batchnorm")

#define QUIET_ROW FLAG("quiet", quiet, "print results and errors only")

#endif
