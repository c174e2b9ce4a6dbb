/* trainer.h - a run: what the files of the trainer share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TRAINER_H
#define DDP_TRAINER_H

#include "checkpoint/state.h"
#include "engine/engine.h"
#include "engine/loss_scaler.h"
#include "train/loader.h"

struct ddp_trainer {
    ddp_t *ddp; /* not owned, like chain and data */
    ddp_chain_t *chain;
    struct ddp_train_config cfg; /* resolved: no zero means a default */
    struct ddp__loader loader;
    struct ddp__engine *engine;
    int *sizes;           /* of a step's sub-batches; owned */
    int64_t step_samples; /* of all ranks, in a whole step */
    bool divides_sums;    /* for norms, on all ranks; false with one rank */
    char own[96]; /* with own_data: what all ranks have; "": they share */
    struct ddp_sink *sinks; /* of the configuration; owned */
    struct ddp__rule *rule; /* of parameters; owned; NULL: one for all */
    bool *frozen;           /* by block of parameters; owned; likewise */
    int64_t total; /* steps of the run; DDP__UNKNOWN until a stream ends */
    int64_t submitted, reported;
    bool reads_stream;
    struct ddp__eval *eval;   /* for eval_data; made at first use */
    ddp_dataset_t *eval_data; /* not owned */
    double eval_copies;       /* bytes of it, in the memory plan */
    struct ddp_memory_plan memory;
    double begin, last, step_s;
    struct ddp__worker_share {
        /* Up to the last report. */
        double exec_s[DDP__MAX_WORKERS], part_s[DDP_STEP_PARTS];
        double busy[DDP__MAX_WORKERS]; /* of the last step's time */
    } share;
    struct ddp__run run;
    struct ddp__checkpoints *ckpt; /* owned; NULL: no checkpoints */
    struct ddp__trace *trace;      /* under way; owned; NULL: none */
    bool traced;                   /* it was begun */
    bool training;                 /* in ddp_trainer_train() */
    bool diverged;
    int64_t begun;   /* the first step of this process */
    int64_t applied; /* steps up to the last one that was not skipped */
    bool gradients;  /* the last step kept its gradients; their divisor */
    double divisor;
    struct ddp_skips skips;
};

#define DDP__UNKNOWN INT64_MAX

/* The engine's specification for the loader's data. */
struct ddp__engine_spec ddp__engine_spec(const struct ddp_train_config *c,
                                         struct ddp__loader *l,
                                         enum ddp__mode mode);
/* DDP_EINVAL if there is no trainer, or its context has finished. */
int ddp__trainer_check(const struct ddp_trainer *t);

#endif
