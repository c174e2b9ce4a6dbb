/* options_data.c - the options of data, images and augmentation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "options_data.h"
#include "options_rows.h"

static const char *const splits[] = {"train", "val", "test", NULL};
static const char *const filters[] = {"model", "bilinear", "bicubic", NULL};
static const char *const train_filters[] = {
    "same", "bilinear", "bicubic", "box", "hamming", "lanczos", "random", NULL};
static const char *const augments[] = {"none", "random", "shift", NULL};
static const char *const erase_fills[] = {"const", "rand", "pixel", NULL};

#define MAX_BAD_ROW(preset_)                                                   \
    SHARE("max-bad", max_bad, preset_,                                         \
          "fraction of unreadable images to tolerate; in training they are "   \
          "replaced by others, in evaluation left out. Unless it is 0, at "    \
          "least one is tolerated; more end the run with exit code 65")

#define CLASS_SUBSET_ROW                                                       \
    TEXT("class-subset", class_subset, "N", NULL,                              \
         "the first N classes of the data alone, or those that a file "        \
         "lists, one name per line",                                           \
         .alias = "classes", .of_network = true)

const struct opt_group options_train_data_group = {
    "Data",
    (const struct opt[]){
        DATA_ROW,
        TEXT("val", val_data, "DIR", NULL,
             "folder of the validation images, if they are not below --data: "
             "one folder per class, or any of the layouts of --data"),
        SHARE("val-split", val_split, NULL,
              "fraction of the training images of each class to hold back for "
              "validation, chosen by --seed; eval finds them again"),
        CLASS_SUBSET_ROW,
        FLAG("no-val", no_val, "train without evaluation"),
        TEXT("cache", cache, "memory[:SIZE]|disk:DIR[:SIZE]", NULL,
             "keep decoded images in memory, up to SIZE (4G) bytes in each "
             "process, or in a folder, up to SIZE (50G) bytes; the weights are "
             "the same"),
        MAX_BAD_ROW("0.1%"),
        MAX_PIXELS_ROW,
        END,
    },
};

const struct opt_group options_eval_data_group = {
    "Data",
    (const struct opt[]){
        DATA_ROW,
        CHOICE("split", split, "NAME", "val", splits,
               "split of the data to evaluate"),
        SHARE("val-split", val_split, NULL,
              "evaluate the images that this fraction held back in training "
              "[that of the weights, if the data have no val/ or test/]",
              .of_network = true),
        INT("seed", seed, "42", 0, 9e15, "seed of --val-split",
            .of_network = true),
        CLASS_SUBSET_ROW,
        FLAG("class-numbers", class_numbers,
             "take the classes of the data in their order, not by the names "
             "that the weights carry"),
        MAX_BAD_ROW("0.1%"),
        MAX_PIXELS_ROW,
        END,
    },
};

const struct opt_group options_images_group = {
    "Images",
    (const struct opt[]){
        INT("img-size", img_size, NULL, 1, 4096,
            "side of the square input of the network, in pixels [that of the "
            "model; 32 for CIFAR's files, 28 for MNIST's]",
            .of_network = true),
        INT("val-crop-size", val_size, "0", 0, 4096,
            "side of the images of evaluation; 0: --img-size, with which "
            "weights are trained and which they carry",
            .of_network = true),
        INT("val-resize-size", resize, "0", 0, 8192,
            "short side before the centre crop; 0 means that of the model, "
            "with an --img-size 8/7 of it; --img-size for CIFAR's and MNIST's "
            "files",
            .of_network = true),
        NUM("crop-pct", crop_pct, "0", 0, 1,
            "share of the short side that the centre crop covers, instead of "
            "--val-resize-size; 0: that of the model",
            .of_network = true),
        CHOICE("interpolation", interpolation, "NAME", "model", filters,
               "filter that resizes images; model: the one that torchvision's "
               "weights of the model expect",
               .of_network = true),
        FLAG("upright", upright,
             "rotate images as their EXIF orientation tag says; torchvision "
             "does not",
             .of_network = true),
        LIST("mean", mean, 3, "R,G,B", NULL, -1e6, 1e6,
             "mean subtracted from each channel, which ranges from 0 to 1 "
             "[that of the model: 0.485,0.456,0.406, for GoogLeNet, Inception "
             "v3 and EfficientNetV2-L 0.5,0.5,0.5]",
             .of_network = true),
        LIST("std", std, 3, "R,G,B", NULL, 1e-6, 1e6,
             "standard deviation each channel is divided by [that of the "
             "model: 0.229,0.224,0.225 or 0.5,0.5,0.5]",
             .of_network = true),
        END,
    },
};

const struct opt_group options_augmentation_group = {
    "Augmentation",
    (const struct opt[]){
        CHOICE("augment", augment, "HOW", "random", augments,
               "none: centre crop as in evaluation; random: random resized "
               "crop; shift: random crop of the zero-padded image"),
        LIST("scale", area, 2, "LEAST,MOST", "0.08,1", 1e-4, 1,
             "fractions of the area that a random crop covers; MOST may be "
             "left out",
             .least = 1),
        LIST("ratio", ratio, 2, "LEAST,MOST", "0.75,1.3333333333333333", 1e-3,
             1e3, "width of a random crop divided by its height"),
        CHOICE("train-interpolation", train_filter, "NAME", "same",
               train_filters,
               "filter that resizes training images; same: --interpolation; "
               "random: bilinear or bicubic"),
        INT("shift", shift, "4", 1, 1024,
            "padding in pixels for --augment shift"),
        NUM("hflip", hflip, "0.5", 0, 1,
            "probability of mirroring an image, left and right"),
        NUM("vflip", vflip, "0", 0, 1,
            "probability of turning an image upside down"),
        TEXT("aa", policy, "POLICY", NULL,
             "random operations on training images: imagenet (AutoAugment), "
             "ra, ta_wide, augmix, as torchvision has them, or timm's "
             "rand-m9-mstd0.5-inc1, original or v0",
             .alias = "auto-augment"),
        INT("aug-repeats", aug_repeats, "0", 0, 1000,
            "show an epoch's first 1/N of the images, each N times, augmented "
            "in other ways; 0: all once"),
        INT("ra-magnitude", ra_magnitude, "9", 0, 30,
            "--aa ra: strength of the operations"),
        INT("augmix-severity", augmix_severity, "3", 1, 10,
            "--aa augmix: strength of the operations"),
        LIST("color-jitter", jitter, 4, "B,C,S,H", "0,0,0,0", 0, 1e6,
             "largest random change of brightness, contrast, saturation and "
             "hue; a single number is for the first three",
             .least = 1, .spread = 3),
        NUM("color-jitter-prob", jitter_share, "1", 0, 1,
            "probability of --color-jitter"),
        NUM("grayscale-prob", grayscale, "0", 0, 1,
            "probability of taking an image's colours away"),
        NUM("gaussian-blur-prob", blur, "0", 0, 1,
            "probability of blurring an image"),
        NUM("random-erase", erase, "0", 0, 1,
            "probability of erasing random boxes of an image",
            .alias = "reprob"),
        CHOICE("remode", erase_fill, "NAME", "const", erase_fills,
               "what such boxes are filled with: the mean colour (const), a "
               "random colour (rand), or one for each pixel (pixel)"),
        INT("recount", erase_count, "1", 1, 8,
            "the most such boxes of an image, which share the area of one"),
        END,
    },
};
