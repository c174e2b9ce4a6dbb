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
#include "options_data.h"
#include "options_optim.h"
#include "options_rows.h"
#include "options_run.h"

static const char *const formats[] = {"text", "csv", "jsonl", NULL};
static const char *const kinds[] = {"auto", "cpu", NULL};
static const struct opt_word kind_words[] = {{"cuda", "auto"}, {NULL, NULL}};
static const char *const backends[] = {"cpu", "ref", NULL};

/* ---- tables ------------------------------------------------------------- */

#define WORKERS_ROW                                                            \
    INT("workers", workers, NULL, 1, 4096,                                     \
        "CPU workers; STARPU_NCPU overrides it [one per core]", .letter = 'j')

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
        "another rank has died or hangs, or a GPU fails: the last message has "
        "the newest checkpoint, from which the same command resumes on what is "
        "left, as ddprun does by itself. A StarPU that contrib/build-starpu "
        "did not build may end with 134 (SIGABRT) instead.",
    .plain = "data",
    .group =
        (const struct opt_group *const[]){
            &options_train_data_group, &options_images_group,
            &options_augmentation_group, &network, &start, &tuning,
            &options_length_group, &options_optimizer_group,
            &options_schedule_group, &options_output_group,
            &options_tracing_group, &options_checkpoints_group, &devices, NULL},
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
    .group =
        (const struct opt_group *const[]){&options_eval_data_group, &evaluation,
                                          &options_images_group, &weights,
                                          &network, &sub_batch, &devices, NULL},
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
    .group =
        (const struct opt_group *const[]){&infer_data, &predictions, &weights,
                                          &options_images_group, &network,
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
