/* options.c - the options of the program imagenet
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Names are those of timm's and torchvision's training scripts where they have
 * one; the batch size is the one of a step, of all devices together.
 */
#include "config.h"

#include "ddp.h"

#include "foreign.h"
#include "options.h"
#include "options_optim.h"
#include "options_rows.h"

static const char *const splits[] = {"train", "val", "test", NULL};
static const char *const filters[] = {"model", "bilinear", "bicubic", NULL};
static const char *const train_filters[] = {
    "same", "bilinear", "bicubic", "box", "hamming", "lanczos", "random", NULL};
static const char *const augments[] = {"none", "random", "shift", NULL};
static const char *const erase_fills[] = {"const", "rand", "pixel", NULL};
static const char *const wires[] = {"f32", "bf16", NULL};
static const struct opt_word dtype_words[] = {
    {"float32", "f32"}, {"bfloat16", "bf16"}, {"float16", "f16"}, {NULL, NULL}};
static const char *const ttas[] = {"none", "flip", NULL};
static const struct opt_word tta_words[] = {{"0", "none"}, {NULL, NULL}};
static const char *const formats[] = {"text", "csv", "jsonl", NULL};
static const char *const kinds[] = {"auto", "cpu", NULL};
static const struct opt_word kind_words[] = {{"cuda", "auto"}, {NULL, NULL}};
static const char *const backends[] = {"cpu", "ref", NULL};

/* ---- tables ------------------------------------------------------------- */

#define MAX_BAD_ROW(preset_)                                                   \
    SHARE("max-bad", max_bad, preset_,                                         \
          "fraction of unreadable images to tolerate; in training they are "   \
          "replaced by others, in evaluation left out. Unless it is 0, at "    \
          "least one is tolerated; more end the run with exit code 65")
#define TTA_ROW                                                                \
    CHOICE("tta", tta, "HOW", "none", ttas,                                    \
           "flip: average the outputs for each image and its mirror image; "   \
           "twice the work",                                                   \
           .also = tta_words)
#define WORKERS_ROW                                                            \
    INT("workers", workers, NULL, 1, 4096,                                     \
        "CPU workers; STARPU_NCPU overrides it [one per core]", .letter = 'j')

#define TIMES_ROW                                                              \
    TEXT("times", times, "FILE", NULL,                                         \
         "measured times of operations, by ddp-bench calibrate: the plan has " \
         "the time of a step [that of this machine, if there is one]",         \
         .of_run = true)

static const struct opt_group train_data = {
    "Data",
    (const struct opt[]){
        DATA_ROW,
        TEXT("val", val_data, "DIR", NULL,
             "folder of the validation images, if they are not below --data: "
             "one folder per class, or any of the layouts of --data"),
        SHARE("val-split", val_split, NULL,
              "fraction of the training images of each class to hold back for "
              "validation, chosen by --seed; eval finds them again"),
        TEXT("class-subset", class_subset, "N", NULL,
             "the first N classes of the data alone, or those that a file "
             "lists, one name per line",
             .alias = "classes", .of_network = true),
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

static const struct opt_group eval_data = {
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
        TEXT("class-subset", class_subset, "N", NULL,
             "the first N classes of the data alone, or those that a file "
             "lists, one name per line",
             .alias = "classes", .of_network = true),
        FLAG("class-numbers", class_numbers,
             "take the classes of the data in their order, not by the names "
             "that the weights carry"),
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
             "write a CSV table with a row per class; - is stdout"),
        TEXT("predictions", predictions, "FILE", NULL,
             "write a JSON line per image: its class, the one it was taken "
             "for, and their probabilities; - is stdout. imagenet report "
             "shows RUN/predictions.jsonl"),
        QUIET_ROW,
        END,
    },
};

static const struct opt_group infer_data = {
    "Images to classify",
    (const struct opt[]){
        TEXTS("input", input, "PATH",
              "an image, or a folder of images at any depth; - reads paths "
              "from stdin"),
        TEXT("list", list, "FILE", NULL,
             "a file with one path per line; - is stdin"),
        SHARE("max-bad", max_bad, "0",
              "fraction of unreadable images to tolerate; all are listed, and "
              "with more the exit code is 65"),
        MAX_PIXELS_ROW,
        END,
    },
};

static const struct opt_group predictions = {
    "Predictions",
    (const struct opt[]){
        INT("topk", topk, "5", 1, 1000,
            "number of classes to list per image, best first", .letter = 'k'),
        TEXT("class-map", class_map, "FILE", NULL,
             "names of the classes, one per line [those that the weights "
             "carry, or classes.txt next to them]"),
        CHOICE("format", format, "NAME", "text", formats,
               "format of the output", .alias = "results-format"),
        TTA_ROW,
        QUIET_ROW,
        END,
    },
};

static const struct opt_group images = {
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

static const struct opt_group augmentation = {
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

#define PARTIAL_ROW                                                            \
    FLAG("partial-weights", partial_weights,                                   \
         "initialise tensors that the file lacks at random and skip unknown "  \
         "ones; otherwise both are errors")
#define MODEL_ROW(preset_)                                                     \
    TEXT("model", model, "NAME", preset_,                                      \
         "name of the network; \"imagenet inspect\" lists them",               \
         .of_network = true, .word = ddp_model_name)
#define NET_ROWS                                                               \
    INT("num-classes", classes, NULL, 1, 1 << 24,                              \
        "outputs of the network [the classes of the data]",                    \
        .of_network = true),                                                   \
        FLAG("small-stem", small_stem,                                         \
             "ResNets for images of about 32x32: begin with a 3x3 "            \
             "convolution and no pooling",                                     \
             .of_network = true),                                              \
        FLAG("no-aux", no_aux,                                                 \
             "googlenet, inception_v3: without auxiliary classifiers",         \
             .of_network = true),                                              \
        INT("width", width, "0", 0, 4096,                                      \
            "channels of a ResNet's first stage; 0 means 64",                  \
            .of_network = true),                                               \
        WIDTHS("hidden", hidden, "N,...", "256,128",                           \
               "widths of the hidden layers of mlp", .of_network = true),      \
        CHOICE("dtype", dtype, "TYPE", "f32", dtypes,                          \
               "type of the activations; weights are always f32",              \
               .of_network = true, .also = dtype_words)

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
             "initial weights (safetensors, or the .json index of several "
             "files); if the number of classes differs, the last layer is "
             "initialised at random",
             .alias = "initial-checkpoint"),
        PARTIAL_ROW,
        FLAG("zero-init-residual", zero_init_residual,
             "initialise residual branches to zero"),
        INT("whiten", whiten, "0", 0, 1e9,
            "initialise the first convolution so that its outputs on N "
            "training images are uncorrelated, in pairs of opposite signs; 0: "
            "at random"),
        INT("seed", seed, "42", 0, 9e15,
            "seed of weights, data order and augmentation; the same seed, "
            "batch, sub-batch and lanes give bit-identical weights"),
        END,
    },
};

static const struct opt_group tuning = {
    "Fine-tuning",
    (const struct opt[]){
        TEXT("freeze", freeze, "PATTERN,...", NULL,
             "layers or parameters that keep their values, as shell patterns "
             "of their names: layer1, features.[0-3], *.bias; batch norm that "
             "is frozen keeps its statistics too"),
        TEXT("freeze-to", freeze_to, "LAYER", NULL,
             "the same for all layers up to this one"),
        FLAG("freeze-bn", freeze_bn, "the same for all batch norms"),
        FLAG("head-only", head_only, "the same for all but the last layer"),
        TEXT("group-lr", group_lr, "PATTERN=X,...", NULL,
             "what the learning rate of parameters or layers is multiplied by: "
             "fc=10"),
        TEXT("group-weight-decay", group_decay, "PATTERN=X,...", NULL,
             "weight decay of parameters or layers"),
        NUM("norm-weight-decay", norm_decay, "-1", -1, 1e3,
            "weight decay of normalisation parameters; -1: 0, or that of all "
            "with --decay-all"),
        NUM("bias-weight-decay", bias_decay, "-1", -1, 1e3,
            "the same of biases"),
        NUM("layer-decay", layer_decay, "1", 1e-6, 1,
            "what the learning rate of each layer is times that of the layer "
            "after it"),
        END,
    },
};

#define SYNC_BN_ROW                                                            \
    FLAG("sync-bn", sync_bn,                                                   \
         "batch norm has the statistics of all images of a step, not of a "    \
         "sub-batch; each sub-batch is a lane then, and all are in memory",    \
         .alias = "sync-batchnorm")

static const struct opt_group length = {
    "Length and batch",
    (const struct opt[]){
        INT("epochs", epochs, "90", 1, 1e9, "passes over the training images"),
        INT("steps", steps, NULL, 1, 1e15,
            "number of steps, instead of --epochs; the schedule spans them"),
        INT("batch-size", batch, NULL, 1, 1 << 24,
            "images per step, over all devices [256, or 8 for each device if "
            "that is more]",
            .letter = 'b'),
        INT("batch-per-device", batch_per_device, NULL, 1, 1 << 24,
            "images per step and device, instead of --batch-size, which is "
            "computed from it and printed"),
        INT("world-size", world_size, "1", 1, 65536,
            "number of processes that lines of torchrun are for: the batch is "
            "so many times --batch-size, which counts the images of one",
            .alias = "nproc_per_node"),
        FLAG("drop-last", drop_last,
             "leave out the last step of an epoch if it has fewer images"),
        INT("sub-batch", sub_batch, NULL, 1, 1 << 20,
            "images processed together, as one task per layer [32, or fewer, "
            "so that there is one for each of more than 8 devices]"),
        INT("lanes", lanes, NULL, 1, 65536,
            "gradient accumulators, the number of devices that can share a "
            "step [8, or one for each device, or the number of sub-batches if "
            "smaller]"),
        SYNC_BN_ROW,
        FLAG("shard-optimizer", shard_optimizer,
             "with several ranks: each keeps a part of the optimizer's state "
             "(ZeRO-1), which takes less memory; the weights are the same"),
        CHOICE("wire-dtype", wire, "TYPE", "f32", wires,
               "type of gradients between ranks; bf16 has half the bytes and "
               "rounds sums of gradients, with one rank, too",
               .also = dtype_words),
        END,
    },
};

static const struct opt_group output = {
    "Output",
    (const struct opt[]){
        TEXT("output", output, "DIR", NULL,
             "folder of the run: config.txt, classes.txt, run.json, log.txt, "
             "metrics.jsonl, summary.csv, checkpoints in ckpt/, and at the end "
             "weights.safetensors [runs/MODEL-DATE-TIME]",
             .of_run = true),
        TEXT("config", config, "FILE", NULL,
             "take options that are not given from a recipe, or from the "
             "config.txt of a run: lines NAME = VALUE; also the name of a "
             "recipe that is installed, such as resnet50",
             .of_run = true),
        FLAG("dry-run", dry_run,
             "check all options, open the data, build the network, print the "
             "options as they are resolved, and end",
             .of_run = true),
        TIMES_ROW,
        INT("eval-every", eval_every, "1", 1, 1e9,
            "evaluate every N epochs, and at the end", .alias = "val-interval"),
        INT("eval-steps", eval_steps, NULL, 1, 1e15,
            "also evaluate every N steps"),
        INT("patience", patience, NULL, 1, 1e9,
            "end the run after so many evaluations in a row without a better "
            "top-1 accuracy"),
        TIME("time-limit", time_limit, NULL,
             "save and stop before this time since the start is over: seconds, "
             "or H:MM:SS as for sbatch's --time"),
        INT("grace", grace, "0", 0, 1e6,
            "seconds after a signal in which the run must have saved and "
            "ended; else it is ended without saving. 0: no limit"),
        INT("log-every", log_every, NULL, 1, 1e9,
            "print a line every N steps if the output is not a terminal [every "
            "10 seconds]",
            .alias = "log-interval"),
        TEXT("log", log, "KIND,...", "csv",
             "records in addition to those that every run has (csv): "
             "tensorboard, event files in RUN/tb; wandb, an offline run in "
             "RUN/wandb for wandb sync; mlflow, a file store in RUN/mlruns"),
        INT("log-histograms", log_histograms, NULL, 1, 1e9,
            "every N epochs, add histograms of the weights, and of the "
            "gradients of the last step, to the records of --log tensorboard "
            "and wandb"),
        INT("log-images", log_images, "16", 0, 1000,
            "the first N images, as the network gets them, in the records of "
            "--log tensorboard; at most --sub-batch"),
        FLAG("weight-norm", weight_norm,
             "record the norm of all weights after each epoch"),
        FLAG("quiet", quiet, "print errors and the final line only"),
        FLAG("verbose", verbose, "print lines of steps on a terminal too"),
        TTA_ROW,
        END,
    },
};

static const struct opt_group tracing = {
    "Traces",
    (const struct opt[]){
        INT("trace", trace, NULL, 1, 1e6,
            "write what each worker did in N steps, from the fourth on, to "
            "trace.json in the folder of the run: for ui.perfetto.dev or "
            "chrome://tracing; of other ranks trace-rank-R.json"),
        TEXT("graph", graph, "FILE", NULL,
             "write the tasks of a step, the fourth or the first of --trace, "
             "as a graph for Graphviz; FILE.svg is drawn at the end, which "
             "takes the program dot, and FILE.dot written beside it"),
        END,
    },
};

static const struct opt_group checkpoints = {
    "Checkpoints",
    (const struct opt[]){
        TEXT("resume", resume, "auto|none|DIR", "auto",
             "resume from the newest checkpoint in --output, if any; from "
             "none; or from the newest in another run's folder",
             .of_run = true),
        TEXT(
            "resume-with", resume_with, "CHANGED,...", NULL,
            "options that differ from those of the run to resume, such as "
            "epochs, batch, lr, data, val, augmentation: continue with the new "
            "values, and record that in the checkpoints. The weights are those "
            "of a new run",
            .of_run = true),
        TEXT("ckpt-every", ckpt_every, "TIME|Nit|Nep|none", "10m",
             "interval between checkpoints, in s, m, h, steps (it) or epochs "
             "(ep); in addition, one is written at the end and after the best "
             "evaluation"),
        INT("ckpt-failures", ckpt_failures, "0", 0, 1e6,
            "end the run with exit code 74 when so many checkpoints in a row "
            "cannot be written; 0: only when that at its end cannot"),
        INT("keep-last", keep_last, "3", 2, 1e6,
            "number of recent checkpoints to keep"),
        INT("save-every", save_every, "0", 0, 1e9,
            "also keep the checkpoint after every N-th epoch"),
        END,
    },
};

static const struct opt_group sub_batch = {
    "Batch",
    (const struct opt[]){
        INT("sub-batch", sub_batch, "32", 1, 1 << 20,
            "images processed together"),
        END,
    },
};

static const struct opt_group weights = {
    "Weights",
    (const struct opt[]){
        TEXT("weights", weights, "FILE", NULL,
             "safetensors with torchvision's names, or the .json index of "
             "several files; network and image options are those that it "
             "carries, or in config.txt next to it"),
        PARTIAL_ROW,
        END,
    },
};

static const struct opt_group devices = {
    "Devices",
    (const struct opt[]){
        WORKERS_ROW,
        CHOICE("device", device, "NAME", "auto", kinds,
               "cpu: leave GPUs out [GPUs train where there are some]",
               .also = kind_words),
        CHOICE("backend", backend, "NAME", "cpu", backends,
               "kernels of CPU workers: oneDNN (cpu) or plain C (ref)"),
        INT("peer-timeout", peer_timeout, "300", 0, 1e9,
            "with several ranks: end with exit code 76 when one of them has "
            "done nothing for so many seconds that others wait for. 0: never"),
        END,
    },
};

static const struct opt_group examined = {
    "Options",
    (const struct opt[]){
        TEXT("output", output, "DIR", NULL,
             "folder that runs will write to [the current one]"),
        END,
    },
};

static const struct opt_group exported = {
    "Model",
    (const struct opt[]){
        TEXT("output", output, "FILE", NULL, "ONNX file to write"),
        INT("img-size", img_size, NULL, 1, 4096,
            "side of the square input, in pixels [that of the model]",
            .of_network = true),
        QUIET_ROW,
        END,
    },
};

/* ---- commands ----------------------------------------------------------- */

const struct opt_command train_command = {
    .name = "imagenet train",
    .about =
        "Train a network on a folder of images.\n"
        "\n"
        "Prints lines of name=value, or a progress line if stderr is a "
        "terminal, and a line for each epoch. The last line is final step=N "
        "loss=X top1=X top5=X img/s=X best_step=N best_top1=X best=FILE "
        "last=FILE weights=crc32c:XXXXXXXX: from the last evaluation if there "
        "was one, otherwise from the last epoch; top1 and top5 are "
        "percentages; best is there if there was an evaluation, and its FILE "
        "has those weights.\n"
        "A checkpoint in RUN/ckpt holds everything needed to resume the run "
        "and reach bit-identical weights; the same command resumes it. Each "
        "checkpoint is a folder: eval accepts "
        "RUN/ckpt/best/model.safetensors.\n"
        "SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end the run with a "
        "checkpoint after the current step, as does --time-limit: exit code "
        "75. A second signal ends it immediately, as does --grace. A run that "
        "ends for another reason, such as unreadable images, leaves a "
        "checkpoint too, where its weights are whole.\n"
        "Exit codes: 0 success, 1 failed or diverged, 2 wrong option, 65 too "
        "many unreadable images, 69 no device, 71 out of memory, 74 a file "
        "could not be read or written, 75 interrupted, checkpoint saved, 76 "
        "another rank has died or hangs, 134 (SIGABRT) a GPU was lost during "
        "a copy: the message has the newest checkpoint.",
    .plain = "data",
    .group =
        (const struct opt_group *const[]){
            &train_data, &images, &augmentation, &network, &start, &tuning,
            &length, &options_optimizer_group, &options_schedule_group, &output,
            &tracing, &checkpoints, &devices, NULL},
    .foreign = train_foreign,
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
    .about = "Classify images with the network in --weights.\n"
             "\n"
             "Predictions are written to stdout in the order of the images, "
             "one line each; csv has one record per class of an image: "
             "path,rank,class,name,probability,error. Unreadable images are "
             "listed there and counted, and the rest are classified.",
    .plain = "input",
    .group = (const struct opt_group *const[]){&infer_data, &predictions,
                                               &weights, &images, &network,
                                               &sub_batch, &devices, NULL},
};

const struct opt_command export_command = {
    .name = "imagenet export",
    .about = "Write a network with its weights as an ONNX model (opset 14).\n"
             "\n"
             "Its input is N images as R, G and B planes with values from 0 to "
             "1, normalised by --mean and --std as in training; its output is "
             "N x classes logits.",
    .plain = "output",
    .group =
        (const struct opt_group *const[]){&exported, &weights, &network, NULL},
};

const struct opt_command inspect_command = {
    .name = "imagenet inspect",
    .about = "Print a network's layers, shapes, parameters, FLOPs and memory, "
             "and what a training step needs on this machine.\n"
             "\n"
             "Without a model, list all networks at their usual image size or "
             "at --img-size.",
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
                        "images processed together"),
                    INT("batch-size", batch, NULL, 1, 1 << 24,
                        "images per step, over all devices [8 sub-batches, or "
                        "one for each device if that is more]",
                        .letter = 'b'),
                    INT("lanes", lanes, NULL, 1, 65536,
                        "gradient accumulators [as in training]"),
                    SYNC_BN_ROW,
                    WORKERS_ROW,
                    TIMES_ROW,
                    END,
                }},
            NULL},
};

const struct opt_command doctor_command = {
    .name = "imagenet doctor",
    .about =
        "Check whether training will work on this machine, and how well.\n"
        "\n"
        "Prints lines \"name: value\" on versions, the machine, limits, "
        "folders, variables of the environment and devices, and trains a small "
        "network on all devices and on the plain kernels, whose weights have "
        "to agree. Lines \"warning: ...\" are about what is slow or unusual, "
        "lines \"problem: ...\" about what keeps training from working.\n"
        "Exit codes: 0 training will work, 1 devices compute wrong weights, 2 "
        "a wrong variable or option, 69 no device, 71 out of memory, 74 a "
        "folder cannot be written.",
    .group = (const struct opt_group *const[]){&examined, &devices, NULL},
};
