/* options.c - the options of the program imagenet
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Names are those of timm's and torchvision's training scripts where they have
 * one; the batch size is the one of a step, of all devices together.
 */
#include "config.h"

#include "options.h"

#define OPT_STRUCT struct settings
#include "common/opt_rows.h"

static const char *const splits[] = {"train", "val", "test", NULL};
static const char *const augments[] = {"none", "random", "shift", NULL};
static const char *const dtypes[] = {"f32", "bf16", "f16", NULL};
static const char *const optimizers[] = {
    "sgd",  "momentum", "nesterov", "flux-momentum",
    "adam", "adamw",    "rmsprop",  NULL};
static const char *const schedules[] = {"constant", "step",     "cosine",
                                        "linear",   "onecycle", NULL};
static const char *const ttas[] = {"none", "flip", NULL};
static const char *const formats[] = {"text", "csv", "jsonl", NULL};
static const char *const backends[] = {"cpu", "ref", NULL};

#define DATA_ROW                                                               \
    TEXT("data", data, "DIR", NULL,                                            \
         "images: ImageNet as Kaggle has it, CIFAR-10's binary files, or a "   \
         "folder per class, in train/ and val/ (or test/)",                    \
         .alias = "data-dir")
#define MAX_BAD_ROW(preset_)                                                   \
    SHARE("max-bad", max_bad, preset_,                                         \
          "unreadable images that are borne and replaced by others, one at "   \
          "least unless it is 0; more end the run with exit code 65")
#define MAX_PIXELS_ROW                                                         \
    INT("max-pixels", max_pixels, "178956970", 1, 1e12,                        \
        "an image of more counts as unreadable")
#define TTA_ROW                                                                \
    CHOICE("tta", tta, "HOW", "none", ttas,                                    \
           "flip: evaluate each image and its mirror image, and take the "     \
           "mean; twice the work")
#define WORKERS_ROW                                                            \
    INT("workers", workers, NULL, 1, 4096,                                     \
        "CPU workers; STARPU_NCPU wins [one per core]", .letter = 'j')

static const struct opt_group train_data = {
    "Data",
    (const struct opt[]){
        DATA_ROW,
        TEXT("val", val_data, "DIR", NULL,
             "validation images that are not below --data"),
        FLAG("no-val", no_val, "train without evaluation"),
        MAX_BAD_ROW("0.1%"),
        MAX_PIXELS_ROW,
        END,
    },
};

static const struct opt_group eval_data = {
    "Data",
    (const struct opt[]){
        DATA_ROW,
        CHOICE("split", split, "NAME", "val", splits, "which part of the data"),
        MAX_BAD_ROW("0.1%"),
        MAX_PIXELS_ROW,
        END,
    },
};

static const struct opt_group evaluation = {
    "Evaluation",
    (const struct opt[]){
        TTA_ROW,
        TEXT("per-class", per_class, "FILE", NULL,
             "write a CSV table of the classes; - is stdout"),
        END,
    },
};

static const struct opt_group infer_data = {
    "Images to name",
    (const struct opt[]){
        TEXTS("input", input, "PATH",
              "an image, or a folder of images at any depth; - reads paths "
              "from stdin"),
        TEXT("list", list, "FILE", NULL,
             "a file of paths, one on a line; - is stdin"),
        SHARE("max-bad", max_bad, "0",
              "unreadable images that are borne; all are named, and with more "
              "the exit code is 65"),
        MAX_PIXELS_ROW,
        END,
    },
};

static const struct opt_group answers = {
    "Answers",
    (const struct opt[]){
        INT("topk", topk, "5", 1, 1000, "classes of an image, best first",
            .letter = 'k'),
        TEXT("class-map", class_map, "FILE", NULL,
             "names of the classes, one on a line [classes.txt beside the "
             "weights]"),
        CHOICE("format", format, "NAME", "text", formats, "of the output",
               .alias = "results-format"),
        TTA_ROW,
        END,
    },
};

static const struct opt_group images = {
    "Images",
    (const struct opt[]){
        INT("img-size", img_size, NULL, 1, 4096,
            "side of the square that goes into the network, in pixels [224, "
            "CIFAR-10's files 32]",
            .of_network = true),
        INT("val-resize-size", resize, "0", 0, 8192,
            "short side before the centre crop; 0 is 8/7 of --img-size, for "
            "CIFAR-10's files --img-size",
            .of_network = true),
        FLAG("upright", upright,
             "turn images as their EXIF tag says, which torchvision does not",
             .of_network = true),
        LIST("mean", mean, 3, "R,G,B", "0.485,0.456,0.406", -1e6, 1e6,
             "taken from channels that run from 0 to 1", .of_network = true),
        LIST("std", std, 3, "R,G,B", "0.229,0.224,0.225", 1e-6, 1e6,
             "what they are then divided by", .of_network = true),
        END,
    },
};

static const struct opt_group augmentation = {
    "Augmentation",
    (const struct opt[]){
        CHOICE("augment", augment, "HOW", "random", augments,
               "centre crop as in evaluation, random resized crop, or a crop "
               "from the zero-padded image"),
        NUM("scale", min_area, "0.08", 1e-4, 1,
            "smallest share of the area that a random crop takes"),
        INT("shift", shift, "4", 1, 1024, "pixels of padding of shift"),
        FLAG("no-flip", no_flip, "do not mirror half of the images"),
        NUM("random-erase", erase, "0", 0, 1,
            "share of the images in which a box is painted over",
            .alias = "reprob"),
        END,
    },
};

#define PARTIAL_ROW                                                            \
    FLAG("partial-weights", partial_weights,                                   \
         "tensors that the file lacks stay random, others in it are passed "   \
         "over; without, either is an error")
#define MODEL_ROW(preset_)                                                     \
    TEXT("model", model, "NAME", preset_,                                      \
         "network; inspect without a name lists them", .of_network = true)
#define NET_ROWS                                                               \
    INT("num-classes", classes, NULL, 1, 1 << 24,                              \
        "outputs of the network [the classes of the data]",                    \
        .of_network = true),                                                   \
        FLAG("small-stem", small_stem,                                         \
             "ResNets for images of about 32x32: begin with a 3x3 "            \
             "convolution, without pooling",                                   \
             .of_network = true),                                              \
        FLAG("no-aux", no_aux,                                                 \
             "googlenet, inception_v3: without auxiliary classifiers",         \
             .of_network = true),                                              \
        INT("width", width, "0", 0, 4096,                                      \
            "channels of a ResNet's first stage; 0 is 64",                     \
            .of_network = true),                                               \
        WIDTHS("hidden", hidden, "N,...", "256,128",                           \
               "widths of the hidden layers of mlp", .of_network = true),      \
        CHOICE("dtype", dtype, "TYPE", "f32", dtypes,                          \
               "what activations are computed in; weights stay f32",           \
               .of_network = true)

static const struct opt_group network = {
    "Network",
    (const struct opt[]){MODEL_ROW("resnet18"), NET_ROWS, END},
};

static const struct opt_group inspected = {
    "Network",
    (const struct opt[]){MODEL_ROW(NULL), NET_ROWS, END},
};

static const struct opt_group start = {
    "Start",
    (const struct opt[]){
        TEXT("weights", weights, "FILE", NULL,
             "begin with these weights (safetensors, or the .json list of "
             "several files); a last layer of another number of classes begins "
             "anew",
             .alias = "initial-checkpoint"),
        PARTIAL_ROW,
        FLAG("zero-init-residual", zero_init_residual,
             "begin with residual branches that add nothing"),
        INT("seed", seed, "42", 0, 9e15,
            "of weights, order, augmentation; the same seed, batch, sub-batch "
            "and lanes give the same weights to the bit"),
        END,
    },
};

static const struct opt_group length = {
    "Length and batch",
    (const struct opt[]){
        INT("epochs", epochs, "90", 1, 1e9, "times every image is seen"),
        INT("steps", steps, NULL, 1, 1e15,
            "instead: steps; the schedule then spans them"),
        INT("batch-size", batch, NULL, 1, 1 << 24,
            "images of a step, over all devices [--lanes sub-batches]",
            .letter = 'b'),
        INT("batch-per-device", batch_per_device, NULL, 1, 1 << 24,
            "instead: images of a step for each device found; turned into a "
            "--batch-size once, and printed"),
        INT("sub-batch", sub_batch, "32", 1, 1 << 20,
            "images that go through the network together, as one task per "
            "layer"),
        INT("lanes", lanes, NULL, 1, 65536,
            "gradient accumulators: how many devices can share a step [8, or "
            "the sub-batches of a step if fewer]"),
        END,
    },
};

static const struct opt_group optimizer = {
    "Optimizer",
    (const struct opt[]){
        CHOICE("opt", opt, "NAME", "momentum", optimizers, "update rule"),
        NUM("lr", lr, NULL, 1e-30, 1e6,
            "learning rate [--lr-base for the batch size]"),
        NUM("lr-base", lr_base, NULL, 1e-30, 1e6,
            "learning rate for a batch of --lr-base-size; grows with the "
            "batch, or its square root for adam, adamw and rmsprop [0.1, adam "
            "and adamw 0.001, rmsprop 0.01]"),
        NUM("lr-base-size", lr_base_size, "256", 1, 1e9, "see --lr-base"),
        NUM("momentum", momentum, "0.9", 0, 1,
            "of momentum, nesterov, flux-momentum, rmsprop"),
        LIST("opt-betas", betas, 2, "X,X", "0.9,0.999", 1e-9, 1,
             "of adam and adamw"),
        NUM("opt-eps", eps, "1e-8", 1e-30, 1, "of adam, adamw, rmsprop"),
        NUM("drop", drop, "-1", -1, 0.99,
            "probability of dropout; -1 is the network's own"),
        NUM("drop-path", drop_path, "-1", -1, 0.99,
            "probability that an EfficientNet's last block is left out; -1 is "
            "its own"),
        NUM("weight-decay", weight_decay, "1e-4", 0, 1e3,
            "of weights, not of norms and biases", .alias = "wd"),
        FLAG("decay-all", decay_all, "of norms and biases too"),
        NUM("clip-grad", clip_grad, NULL, 1e-30, 1e30,
            "scale gradients down to this global norm"),
        INT("max-nan-steps", max_nan_steps, "10", 0, 1e9,
            "steps in a row that are skipped because the loss or gradients "
            "are not finite; more end the run with exit code 1"),
        NUM("model-ema-decay", ema_decay, "0", 0, 0.9999999,
            "also keep averages of the weights, which take over 1 - X of them "
            "with every step; saved as weights-ema.safetensors"),
        NUM("label-smoothing", smoothing, "0", 0, 0.999,
            "share of the target spread over all classes",
            .alias = "smoothing"),
        END,
    },
};

static const struct opt_group schedule = {
    "Schedule",
    (const struct opt[]){
        CHOICE("sched", sched, "NAME", "cosine", schedules,
               "how the learning rate goes on after the warm-up"),
        NUM("warmup-epochs", warmup_epochs, NULL, 0, 1e9,
            "of linear rise [0; onecycle 30% of the run]"),
        NUM("warmup-lr", warmup_lr, NULL, 1e-30, 1e6,
            "where the rise begins [1% of --lr, onecycle 4%]"),
        NUM("decay-epochs", decay_epochs, "30", 1e-6, 1e9,
            "step: epochs between two decays"),
        NUM("decay-rate", decay_rate, "0.1", 1e-9, 1e9,
            "step: factor of a decay"),
        NUM("min-lr", min_lr, NULL, 0, 1e6,
            "cosine, linear, onecycle: learning rate at the end [0, onecycle "
            "0.0001 of --lr]"),
        END,
    },
};

static const struct opt_group output = {
    "Output",
    (const struct opt[]){
        TEXT("output", output, "DIR", NULL,
             "folder of the run: config.txt, classes.txt, checkpoints in "
             "ckpt/, at the end weights.safetensors [runs/MODEL-DATE-TIME]"),
        INT("eval-every", eval_every, "1", 1, 1e9,
            "evaluate every N epochs, and at the end", .alias = "val-interval"),
        TIME("time-limit", time_limit, NULL,
             "save and end before so much time has passed since the start: "
             "seconds, or H:MM:SS as sbatch's --time"),
        INT("log-every", log_every, NULL, 1, 1e9,
            "without a terminal: a line every N steps [10 seconds]",
            .alias = "log-interval"),
        TTA_ROW,
        END,
    },
};

static const struct opt_group checkpoints = {
    "Checkpoints",
    (const struct opt[]){
        TEXT("resume", resume, "auto|none|DIR", "auto",
             "go on from the newest checkpoint in --output, if there is one; "
             "from none; or from one in another run's folder"),
        TEXT("ckpt-every", ckpt_every, "TIME|Nit|Nep|none", "10m",
             "write one every so many s, m, h, steps or epochs; there is "
             "always one at the end, and one of the best evaluation"),
        INT("keep-last", keep_last, "3", 2, 1e6, "how many of them stay"),
        INT("save-every", save_every, "0", 0, 1e9,
            "those after every N-th epoch stay as well"),
        END,
    },
};

static const struct opt_group sub_batch = {
    "Batch",
    (const struct opt[]){
        INT("sub-batch", sub_batch, "32", 1, 1 << 20,
            "images that go through the network together"),
        END,
    },
};

static const struct opt_group weights = {
    "Weights",
    (const struct opt[]){
        TEXT("weights", weights, "FILE", NULL,
             "safetensors under torchvision's names, or the .json list of "
             "several files; what config.txt in the same folder says of the "
             "network and its images is used unless given here"),
        PARTIAL_ROW,
        END,
    },
};

static const struct opt_group devices = {
    "Devices",
    (const struct opt[]){
        WORKERS_ROW,
        CHOICE("backend", backend, "NAME", "cpu", backends,
               "kernels of CPU workers: oneDNN's, or plain C"),
        END,
    },
};

static const struct opt_group convert = {
    "Options",
    (const struct opt[]){
        TEXTS("file", input, "FILE",
              "safetensors: IN, which may be the .json list of several files, "
              "then OUT"),
        CHOICE("dtype", dtype, "TYPE", "f32", dtypes, "of the values in OUT"),
        TEXT("strip-prefix", strip_prefix, "TEXT", NULL,
             "taken off all names that begin with it, such as module."),
        TEXT("add-prefix", add_prefix, "TEXT", NULL, "put before all names"),
        TEXT("drop", drop_names, "PATTERN,...",
             "opt.*,ema.*,*num_batches_tracked",
             "names to leave out, as a shell's patterns"),
        END,
    },
};

static const struct opt_group check = {
    "Options",
    (const struct opt[]){
        DATA_ROW,
        SHARE("max-bad", max_bad, "0",
              "unreadable images that are borne; with more, exit code 65"),
        MAX_PIXELS_ROW,
        INT("img-size", img_size, "224", 1, 4096,
            "decode for this size, as training would"),
        INT("workers", workers, NULL, 1, 4096, "threads [one per core]",
            .letter = 'j'),
        END,
    },
};

static const struct opt_group synth = {
    "Options",
    (const struct opt[]){
        TEXT("output", output, "DIR", NULL, "folder to make"),
        INT("classes", classes, "10", 2, 100, "kinds of pictures"),
        INT("train-count", train_count, "2000", 1, 1e7, "pictures to train on"),
        INT("val-count", val_count, "400", 1, 1e7, "pictures to evaluate on"),
        INT("size", size, "80", 16, 4096,
            "pixels of the short side; real ones vary around it"),
        INT("seed", seed, "42", 0, 9e15, "the same gives the same pictures"),
        INT("workers", workers, NULL, 1, 4096, "threads [one per core]",
            .letter = 'j'),
        END,
    },
};

static const struct opt_group exported = {
    "Model",
    (const struct opt[]){
        TEXT("output", output, "FILE", NULL, "the ONNX file to make"),
        INT("img-size", img_size, "224", 1, 4096,
            "side of the square that goes in, in pixels", .of_network = true),
        END,
    },
};

/* ---- commands ----------------------------------------------------------- */

const struct opt_command train_command = {
    .name = "imagenet train",
    .about =
        "Train a network on a folder of images.\n"
        "\n"
        "Prints lines of name=value, or draws one line when stderr is a "
        "terminal. The last line is final step=N loss=X top1=X top5=X img/s=X "
        "weights=crc32c:XXXXXXXX: of the last evaluation if there was one, "
        "else of the last epoch; top1 and top5 are percentages.\n"
        "A checkpoint in RUN/ckpt has all that a run needs to go on to the "
        "same weights, to the bit; the same command does that. Each is a "
        "folder: eval takes RUN/ckpt/best/model.safetensors.\n"
        "SIGINT, SIGTERM and SIGUSR1 end the run after the step at hand and a "
        "checkpoint, and so does --time-limit: exit code 75. A second signal "
        "ends it at once.\n"
        "Exit codes: 0 done, 1 failed or diverged, 2 wrong option, 65 too many "
        "unreadable images, 69 no device, 71 out of memory, 74 a file could "
        "not be written or read, 75 interrupted and saved.",
    .plain = "data",
    .group =
        (const struct opt_group *const[]){
            &train_data, &images, &augmentation, &network, &start, &length,
            &optimizer, &schedule, &output, &checkpoints, &devices, NULL},
};

const struct opt_command eval_command = {
    .name = "imagenet eval",
    .about =
        "Evaluate weights on a folder of images, every image once.\n"
        "\n"
        "The last line is eval samples=N loss=X top1=X top5=X top10=X img/s=X; "
        "top1, top5, top10 are percentages.",
    .plain = "data",
    .group = (const struct opt_group *const[]){&eval_data, &evaluation, &images,
                                               &weights, &network, &sub_batch,
                                               &devices, NULL},
};

const struct opt_command infer_command = {
    .name = "imagenet infer",
    .about =
        "Name what is on images, with the network that --weights holds.\n"
        "\n"
        "The answers go to stdout in the order of the images, a line each; csv "
        "has a record for each class of an image: path,rank,class,name,"
        "probability,error.  An image that cannot be read is named there and "
        "counted, and the others go on.",
    .plain = "input",
    .group = (const struct opt_group *const[]){&infer_data, &answers, &weights,
                                               &images, &network, &sub_batch,
                                               &devices, NULL},
};

const struct opt_command convert_command = {
    .name = "imagenet convert",
    .about =
        "Write the weights of the safetensors file IN as OUT: with another "
        "type, other names, without what only training needs.\n"
        "\n"
        "Tensors of integers must be among those left out.  OUT appears "
        "whole or not at all.",
    .plain = "file",
    .group = (const struct opt_group *const[]){&convert, NULL},
};

const struct opt_command export_command = {
    .name = "imagenet export",
    .about =
        "Write a network with its weights as an ONNX model (opset 14).\n"
        "\n"
        "Its input is N images as R, G and B planes, from 0 to 1, less --mean, "
        "divided by --std of the training; its output N x classes logits.",
    .plain = "output",
    .group =
        (const struct opt_group *const[]){&exported, &weights, &network, NULL},
};

const struct opt_command inspect_command = {
    .name = "imagenet inspect",
    .about = "Print a network's layers, shapes, parameters, work and memory.\n"
             "\n"
             "Without a model, lists those there are, at the size they are "
             "meant for or at --img-size.",
    .plain = "model",
    .group =
        (const struct opt_group *const[]){
            &inspected,
            &(const struct opt_group){
                "Input",
                (const struct opt[]){
                    INT("img-size", img_size, "224", 1, 4096,
                        "side of the square image, in pixels"),
                    INT("sub-batch", sub_batch, "32", 1, 1 << 20,
                        "images that go through the network together"),
                    END,
                }},
            NULL},
};

const struct opt_command check_command = {
    .name = "imagenet data check",
    .about = "Decode every image of both splits; name the bad ones.\n"
             "\n"
             "Exit code 65 when more than --max-bad of a split are bad.",
    .plain = "data",
    .group = (const struct opt_group *const[]){&check, NULL},
};

const struct opt_command synth_command = {
    .name = "imagenet data synth",
    .about = "Make a data set of JPEG files in ImageNet's Kaggle layout that a "
             "network can learn: shapes with a texture, of any position, size "
             "and angle, among clutter and noise.\n"
             "\n"
             "A folder that holds the same set already is left as it is.",
    .plain = "output",
    .group = (const struct opt_group *const[]){&synth, NULL},
};
