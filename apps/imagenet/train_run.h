/* train_run.h - what a run of "imagenet train" holds
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "ddp.h"

#include "board.h"
#include "groups.h"
#include "options.h"
#include "progress.h"
#include "record.h"
#include "run_file.h"

#define WEIGHTS "weights.safetensors"

/* One run and what it holds; all owned but opts and settings. */
struct run {
    const struct opts *opts;
    struct settings *set;
    ddp_t *ddp;
    ddp_dataset_t *data, *val;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
    struct progress progress;
    struct work work; /* an evaluation */
    struct record record;
    struct board board; /* --log */
    struct run_file file;
    const char *weights;       /* the file of them that the run has written */
    struct ddp_progress last;  /* of the last step */
    struct ddp_metrics result; /* of the last evaluation */
    int64_t evaluated;         /* the step it was made after; 0: none */
    int64_t val_bad;           /* validation images reported as unreadable */
    struct ddp_metrics ema;    /* of the averages, if there are some */
    int64_t ema_evaluated;
    struct groups groups;
    float *class_weights, *pos_weight;
    ddp_chain_t *teacher;
    char *ckpt;            /* folder of checkpoints */
    char *trace, *graph;   /* files; NULL: none */
    int64_t ckpt_failures; /* reported ones */
    bool started;          /* a step of this process has ended */
    int rc;                /* exit code of what failed in a callback */
};

#endif
