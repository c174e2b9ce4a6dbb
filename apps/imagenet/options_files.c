/* options_files.c - the options of commands that only read and write files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "options_files.h"
#include "options_rows.h"

static const struct opt_group convert = {
    "Options",
    (const struct opt[]){
        TEXTS("file", input, "FILE",
              "safetensors: IN, which may be the .json index of several files, "
              "then OUT"),
        CHOICE("dtype", dtype, "TYPE", "f32", dtypes,
               "type of the values in OUT"),
        TEXT("strip-prefix", strip_prefix, "TEXT", NULL,
             "prefix to remove from names, such as module."),
        TEXT("add-prefix", add_prefix, "TEXT", NULL,
             "prefix to add to all names"),
        TEXT("drop", drop_names, "PATTERN,...",
             "opt.*,ema.*,*num_batches_tracked",
             "names to leave out, as shell patterns"),
        END,
    },
};

static const struct opt_group check = {
    "Options",
    (const struct opt[]){
        DATA_ROW,
        SHARE("max-bad", max_bad, "0",
              "fraction of unreadable images to tolerate; with more, the exit "
              "code is 65"),
        MAX_PIXELS_ROW,
        INT("img-size", img_size, "224", 1, 4096,
            "size to decode for, as in training"),
        INT("workers", workers, NULL, 1, 4096, "threads [one per core]",
            .letter = 'j'),
        QUIET_ROW,
        END,
    },
};

static const char *const pack_filters[] = {"bilinear", "bicubic", "box",
                                           "hamming",  "lanczos", NULL};

static const struct opt_group pack = {
    "Options",
    (const struct opt[]){
        DATA_ROW,
        TEXT("output", output, "DIR", NULL,
             "folder to create, with a subfolder for each split"),
        INT("shard-samples", shard_samples, "1000", 1, 1e9,
            "images in each tar file"),
        INT("resize", resize, NULL, 1, 32768,
            "resize images whose short side has more pixels to this, as JPEG "
            "files [images are as they were]"),
        INT("quality", quality, "90", 1, 100, "of these JPEG files"),
        CHOICE("interpolation", pack_filter, "NAME", "bilinear", pack_filters,
               "filter that resizes, antialiased as in training"),
        INT("seed", seed, "0", 0, 1e15, "of the order of images"),
        INT("workers", workers, NULL, 1, 256, "threads [one per core]",
            .letter = 'j'),
        QUIET_ROW,
        END,
    },
};

static const struct opt_group unpack = {
    "Options",
    (const struct opt[]){
        DATA_ROW,
        TEXT("output", output, "DIR", NULL,
             "folder to create, with a subfolder for each split"),
        QUIET_ROW,
        END,
    },
};

static const struct opt_group synth = {
    "Options",
    (const struct opt[]){
        TEXT("output", output, "DIR", NULL, "folder to create"),
        INT("classes", classes, "10", 2, 100, "number of classes"),
        INT("train-count", train_count, "2000", 1, 1e7,
            "number of training images"),
        INT("val-count", val_count, "400", 1, 1e7,
            "number of validation images"),
        INT("size", size, "80", 16, 4096,
            "typical length of the short side in pixels"),
        INT("seed", seed, "42", 0, 9e15,
            "seed; the same seed gives the same images"),
        INT("workers", workers, NULL, 1, 4096, "threads [one per core]",
            .letter = 'j'),
        QUIET_ROW,
        END,
    },
};

static const struct opt_group reported = {
    "Options",
    (const struct opt[]){
        TEXTS("run", input, "RUN",
              "folder of a run; several, at most 16, are compared"),
        TEXT("output", output, "FILE", NULL,
             "the page; - is stdout [RUN/report.html; of several runs "
             "report.html]",
             .letter = 'o'),
        TEXT("predictions", predictions, "FILE", NULL,
             "of a single run: also show classes, confusion and the worst "
             "examples of what eval --predictions wrote "
             "[RUN/predictions.jsonl, if it is there]"),
        FLAG("plot", plot,
             "print the curves in the terminal; a page is written only with "
             "--output"),
        TEXT("svg", svg, "DIR", NULL,
             "write the curves as SVG files, such as loss.svg, to this folder; "
             "a page is written only with --output"),
        TEXT("png", png, "DIR", NULL,
             "the same, and a PNG file of each, which takes the program "
             "rsvg-convert"),
        QUIET_ROW,
        END,
    },
};

/* ---- commands ----------------------------------------------------------- */

const struct opt_command convert_command = {
    .name = "imagenet convert",
    .about = "Write the weights of the safetensors file IN to OUT with another "
             "type or other names, without tensors that only training needs.\n"
             "\n"
             "Integer tensors must be among those left out. OUT is written "
             "completely or not at all.",
    .plain = "file",
    .group = (const struct opt_group *const[]){&convert, NULL},
};

const struct opt_command check_command = {
    .name = "imagenet data check",
    .about =
        "Decode every image of both splits and list the unreadable ones.\n"
        "\n"
        "The exit code is 65 if more than --max-bad of a split are unreadable.",
    .plain = "data",
    .group = (const struct opt_group *const[]){&check, NULL},
};

const struct opt_command pack_command = {
    .name = "imagenet data pack",
    .about = "Write the images of both splits into tar files (WebDataset's "
             "layout) with an index, checksums and the names of classes.\n"
             "\n"
             "--data DIR then reads these; \"imagenet data check DIR\" checks "
             "them.",
    .plain = "data",
    .group = (const struct opt_group *const[]){&pack, NULL},
};

const struct opt_command unpack_command = {
    .name = "imagenet data unpack",
    .about = "Write the images of both splits as they are into a folder for "
             "each class, from tar files or any other layout.",
    .plain = "data",
    .group = (const struct opt_group *const[]){&unpack, NULL},
};

const struct opt_command report_command = {
    .name = "imagenet report",
    .about = "Write a page about a run, or compare several: curves, settings, "
             "weights, machines, and how to make them again.\n"
             "\n"
             "The page is one HTML file that needs no network. A run may be "
             "under way.",
    .plain = "run",
    .group = (const struct opt_group *const[]){&reported, NULL},
};

const struct opt_command synth_command = {
    .name = "imagenet data synth",
    .about = "Create a data set of JPEG files in ImageNet's Kaggle layout that "
             "a network can learn: textured shapes of random position, size "
             "and angle, among clutter and noise.\n"
             "\n"
             "A folder that already holds the same set is left unchanged.",
    .plain = "output",
    .group = (const struct opt_group *const[]){&synth, NULL},
};
