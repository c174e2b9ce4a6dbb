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

/* One of ours of another name, a value of one, what is always so, values that
 * ask for what is always so, or none. */
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
#define ONLY(name, values, why)                                                \
    {                                                                          \
        name, NULL, values, why                                                \
    }
#define NONE(name, why)                                                        \
    {                                                                          \
        name, NULL, NULL, why                                                  \
    }

#define BY_MPI "processes are started by mpirun, and find each other"
#define NO_SPLITS                                                              \
    "there is no loss of clean and changed copies of an image; see --aa "      \
    "augmix"
#define COMPILED "a step is compiled to a task graph once"

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
    MEANS("dr", "decay-rate"),
    MEANS("nproc-per-node", "world-size"),
    SETS("ra-sampler", "aug-repeats", "3"),
    SETS("amp", "dtype", "bf16"),
    SETS("native-amp", "dtype", "bf16"),
    SETS("no-aug", "augment", "none"),
    SETS("no-flip", "hflip", "0"),
    SETS("log-wandb", "log", "wandb"),
    SETS("bce-loss", "loss", "bce"),
    HOLDS("channels-last"),
    HOLDS("pin-mem"),
    HOLDS("no-prefetcher"),
    HOLDS("persistent-workers"),
    HOLDS("use-multi-epochs-loader"),
    HOLDS("use-v2"),
    HOLDS("no-ddp-bb"),
    HOLDS("torchscript"),
    HOLDS("sched-on-updates"),
    HOLDS("use-deterministic-algorithms"),
    ONLY("amp-impl", "native", "use --dtype bf16 or f16"),
    ONLY("fuser", "te,old,nvfuser", COMPILED),
    ONLY("crop-mode", "center", "evaluation takes the centre; see --crop-pct"),
    ONLY("resize-mode", "shortest",
         "evaluation resizes the short side; see --val-resize-size"),
    ONLY("eval-metric", "top1",
         "the best evaluation has the highest top-1 accuracy"),
    ONLY("dist-bn", "reduce",
         "running statistics are the mean of all sub-batches: reduce"),
    ONLY("mixup-mode", "batch",
         "all pairs of a sub-batch have the same share: batch"),
    ONLY("worker-seeding", "all,part", "images depend on --seed alone"),
    ONLY("train-split", "train", "see --data and --val"),
    ONLY("gp", "avg", "networks have the pooling of their papers: avg"),
    ONLY("in-chans", "3", "images have three channels"),
    ONLY("start-epoch", "0", "a run knows its epoch; see --resume"),
    ONLY("recovery-interval", "0", "use --ckpt-every"),
    ONLY("drop-block", "0,0.0",
         "there is no DropBlock; see --drop and --drop-path"),
    ONLY("aug-splits", "0", NO_SPLITS),
    NONE("jsd-loss", NO_SPLITS),
    NONE("resplit", NO_SPLITS),
    NONE("split-bn", NO_SPLITS),
    NONE("cutmix-minmax", "boxes have areas from a Beta distribution; see "
                          "--cutmix"),
    ONLY("grad-accum-steps", "1",
         "a step of --batch-size images runs as sub-batches of --sub-batch, "
         "whose gradients are accumulated"),
    ONLY("lr-cycle-decay", "1,1.0",
         "cycles of --sched restarts have the same rate"),
    ONLY("lr-cycle-limit", "1", "--sched restarts fills the --epochs"),
    ONLY("lr-k-decay", "1,1.0", "see --sched polynomial and --lr-power"),
    NONE("lr-base-scale", "--lr-base grows with the batch, or its root: see "
                          "--help"),
    NONE("epoch-repeats", "use --epochs"),
    NONE("test-only", "use \"imagenet eval --data DIR --weights FILE\""),
    NONE("evaluate", "use \"imagenet eval --data DIR --weights FILE\""),
    NONE("pretrained", "use --weights FILE, of safetensors; see "
                       "docs/weights.md"),
    NONE("no-resume-opt", "use --weights FILE for a new run"),
    NONE("validation-batch-size", "use --sub-batch"),
    NONE("model-ema-force-cpu", "averages are where the weights are"),
    NONE("dist-url", BY_MPI),
    NONE("dist-backend", BY_MPI),
    NONE("local-rank", BY_MPI),
    NONE("local_rank", BY_MPI),
    NONE("apex-amp", "use --dtype bf16 or f16"),
    NONE("cache-dataset",
         "the list of images is read at each start, which takes seconds; "
         "--cache keeps decoded images"),
    NONE("dataset", "--data DIR finds out what it holds"),
    NONE("experiment", "use --output DIR"),
    NONE("save-images", "use --log tensorboard --log-images N"),
    NONE("bn-momentum", "batch norm has the model's"),
    NONE("bn-eps", "batch norm has the model's"),
    NONE("torchcompile", COMPILED),
    NONE("grad-checkpointing", "activations are kept; use a smaller "
                               "--sub-batch"),
    NONE("head-init-scale", "the last layer starts as the model has it"),
    NONE("head-init-bias", "the last layer starts as the model has it"),
    NONE("model-kwargs", "networks have options of their own; see \"Network\" "
                         "in --help"),
    NONE("opt-kwargs", "see --opt-betas and --opt-eps"),
    NONE("input-size", "use --img-size"),
    NONE("transformer-embedding-decay", "no network here has embeddings"),
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
