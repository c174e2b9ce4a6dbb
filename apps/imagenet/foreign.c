/* foreign.c - names that timm's and torchvision's scripts have for options
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Those that mean something else here, or nothing, are refused with what there
 * is instead.
 */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "foreign.h"

/* One of ours of another name, a value of one, or what is always so. */
#define MEANS(name, option)                                                    \
    {                                                                          \
        name, option, NULL, NULL                                               \
    }
#define SETS(name, option, value)                                              \
    {                                                                          \
        name, option, value, NULL                                              \
    }
#define HOLDS(name)                                                            \
    {                                                                          \
        name, NULL, NULL, NULL                                                 \
    }
#define NONE(name, why)                                                        \
    {                                                                          \
        name, NULL, NULL, why                                                  \
    }

#define BY_MPI "processes are started by mpirun, and find each other"
#define NO_LOADERS "CPU workers read and decode; see --workers"

const struct opt_foreign train_foreign[] = {
    MEANS("data-path", "data"),
    MEANS("output-dir", "output"),
    MEANS("print-freq", "log-every"),
    MEANS("train-crop-size", "img-size"),
    MEANS("clip-grad-norm", "clip-grad"),
    MEANS("drop-connect", "drop-path"),
    MEANS("checkpoint-hist", "keep-last"),
    MEANS("amp-dtype", "dtype"),
    MEANS("lr-steps", "decay-milestones"),
    MEANS("ra-reps", "aug-repeats"),
    SETS("ra-sampler", "aug-repeats", "3"),
    SETS("amp", "dtype", "bf16"),
    SETS("native-amp", "dtype", "bf16"),
    SETS("no-aug", "augment", "none"),
    SETS("no-flip", "hflip", "0"),
    SETS("model-ema", "model-ema-decay", "0.9998"),
    HOLDS("channels-last"),
    HOLDS("pin-mem"),
    HOLDS("sched-on-updates"),
    HOLDS("use-deterministic-algorithms"),
    NONE("test-only", "use \"imagenet eval --data DIR --weights FILE\""),
    NONE("evaluate", "use \"imagenet eval --data DIR --weights FILE\""),
    NONE("pretrained", "use --weights FILE, of safetensors; see "
                       "docs/weights.md"),
    NONE("start-epoch", "a run knows its epoch; see --resume"),
    NONE("no-resume-opt", "use --weights FILE for a new run"),
    NONE("grad-accum-steps", "a step of --batch-size images runs as "
                             "sub-batches of --sub-batch, whose gradients are "
                             "accumulated"),
    NONE("validation-batch-size", "use --sub-batch"),
    NONE("model-ema-steps", "averages move at every step; see "
                            "--model-ema-decay"),
    NONE("model-ema-force-cpu", "averages are where the weights are"),
    NONE("world-size", BY_MPI),
    NONE("dist-url", BY_MPI),
    NONE("dist-backend", BY_MPI),
    NONE("local-rank", BY_MPI),
    NONE("local_rank", BY_MPI),
    NONE("device", "GPUs train where there are some; see --workers"),
    NONE("apex-amp", "use --dtype bf16 or f16"),
    NONE("no-prefetcher", NO_LOADERS),
    NONE("use-multi-epochs-loader", NO_LOADERS),
    NONE("worker-seeding", "images depend on --seed alone"),
    NONE("cache-dataset", "files are listed at each start; see --cache-dir"),
    NONE("dataset", "--data DIR finds out what it holds"),
    NONE("recovery-interval", "use --ckpt-every"),
    NONE("experiment", "use --output DIR"),
    NONE("log-wandb", "use --log tensorboard"),
    NONE("eval-metric", "the best evaluation has the highest top-1 accuracy"),
    NONE("dist-bn", "running statistics are the mean of all sub-batches"),
    NONE("bn-momentum", "batch norm has the model's"),
    NONE("bn-eps", "batch norm has the model's"),
    NONE("drop-block", "there is no DropBlock; see --drop and --drop-path"),
    NONE("lr-noise", "there is no noise in schedules; see --sched"),
    NONE("lr-cycle-decay", "cycles of --sched restarts have the same rate"),
    NONE("lr-cycle-limit", "--sched restarts fills the --epochs"),
    NONE("lr-k-decay", "see --sched polynomial and --lr-power"),
    NONE("crop-mode", "evaluation takes the centre; see --crop-pct"),
    NONE("torchcompile", "a step is compiled to a task graph once"),
    NONE("torchscript", "a step is compiled to a task graph once"),
    NONE("fuser", "a step is compiled to a task graph once"),
    NONE("grad-checkpointing", "activations are kept; use a smaller "
                               "--sub-batch"),
    NONE("head-init-scale", "the last layer starts as the model has it"),
    NONE("input-size", "use --img-size"),
    {NULL, NULL, NULL, NULL},
};

/* timm's names of networks that have torchvision's here. */
static const struct opt_word models[] = {
    {"mobilenetv2_100", "mobilenet_v2"},
    {"mobilenetv3_large_100", "mobilenet_v3_large"},
    {"mobilenetv3_small_100", "mobilenet_v3_small"},
    {"efficientnetv2_s", "efficientnet_v2_s"},
    {"efficientnetv2_m", "efficientnet_v2_m"},
    {"efficientnetv2_l", "efficientnet_v2_l"},
    {NULL, NULL},
};

const char *foreign_model(const char *name)
{
    for (const struct opt_word *w = models; w->name; w++)
        if (!strcmp(w->name, name))
            return w->means;
    return name;
}
