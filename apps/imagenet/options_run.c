/* options_run.c - the options of how long a run is, and what it leaves
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "options_run.h"
#include "options_rows.h"

static const char *const wires[] = {"f32", "bf16", NULL};

const struct opt_group options_length_group = {
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

const struct opt_group options_output_group = {
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

const struct opt_group options_tracing_group = {
    "Traces",
    (const struct opt[]){
        INT("trace", trace, NULL, 1, 1e6,
            "write what each worker did in N steps, from the fourth on, to "
            "trace.json in the folder of the run: for ui.perfetto.dev or "
            "chrome://tracing; of other ranks trace-rank-R.json"),
        TEXT("graph", graph, "FILE", NULL,
             "write the tasks of a step, the fourth or the first of --trace, "
             "as a graph for Graphviz; FILE.svg is drawn at the end, which "
             "takes the program dot, and FILE.dot written next to it"),
        END,
    },
};

const struct opt_group options_checkpoints_group = {
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
