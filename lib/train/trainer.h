/* trainer.h - what the files of the trainer share */
#ifndef DDP_TRAINER_H
#define DDP_TRAINER_H

#include "engine/engine.h"
#include "train/loader.h"

/* Where a run is, beside its weights: what a checkpoint remembers. */
struct ddp__run {
    int64_t step; /* steps done; of a checkpoint */
    int64_t told; /* the step after which on_epoch was called last */
    struct ddp_metrics epoch; /* sums since the epoch began */
    double epoch_divisor;
    int64_t evaluated, best, ema_evaluated; /* after which step; 0: never */
    struct ddp_metrics evaluation, best_evaluation, ema_evaluation;
    double guard[DDP__GUARD_STATE]; /* of a checkpoint: what skips have left */
    double seconds;                 /* of training, before this process */
};

struct ddp_trainer {
    ddp_t *ddp; /* not owned, like chain and data */
    ddp_chain_t *chain;
    struct ddp_train_config cfg; /* resolved: no zeros that mean a default */
    struct ddp__loader loader;
    struct ddp__engine *engine;
    int *sizes; /* of a step's sub-batches; owned */
    int64_t total, submitted, reported;
    struct ddp__eval *eval;   /* for eval_data; made at first use */
    ddp_dataset_t *eval_data; /* not owned */
    double begin, last, step_s, data_s;
    struct ddp__run run;
    struct ddp__checkpoints *ckpt; /* owned; NULL: none are written */
    bool training;                 /* in ddp_train() */
    bool diverged;
    int64_t begun;  /* the first step of this process */
    bool gradients; /* the last step left gradients, of this divisor */
    double divisor;
    struct ddp_skips skips;
};

/* Check a configuration, and fill in what its zeros mean for these data. */
int ddp__train_config(struct ddp_train_config *c, const ddp_dataset_t *d);
/* The engine's specification for the loader's data. */
struct ddp__engine_spec ddp__engine_spec(const struct ddp_train_config *c,
                                         struct ddp__loader *l,
                                         enum ddp__mode mode);
/* Submit the next step, with its update or leaving gradients. */
int ddp__trainer_submit(struct ddp_trainer *t, bool update);
/* Wait for the oldest step that was not reported; or for all of them. */
int ddp__trainer_collect(struct ddp_trainer *t, struct ddp__result *r);
int ddp__trainer_drain(struct ddp_trainer *t, struct ddp__result *r);
/* The learning rate of a step. */
double ddp__trainer_lr(const struct ddp_trainer *t, int64_t step);
/* DDP_ENOMEM, with a table, if the trainer's engine cannot fit. */
int ddp__memory_check(const struct ddp_trainer *t);
struct ddp_metrics ddp__metrics(const double *stats);
/* Of the epoch so far. */
struct ddp_metrics ddp__trainer_epoch_mean(const struct ddp_trainer *t);

/* ---- checkpoint.c: all of it does nothing without a folder for them ------ */

int ddp__checkpoints_new(struct ddp_trainer *t);
void ddp__checkpoints_free(struct ddp_trainer *t);
/* Make sure, before any work is done, that they can be written. */
int ddp__checkpoints_begin(struct ddp_trainer *t);
/* Is one to be written after the steps submitted so far? */
bool ddp__checkpoint_due(const struct ddp_trainer *t);
/* Has a callback asked for one? */
bool ddp__checkpoint_wanted(const struct ddp_trainer *t);
/* Copy the state, when all steps are done, and have it written. */
int ddp__checkpoint_take(struct ddp_trainer *t);
/* Wait until it is on disk, and how that went; the same without waiting. */
int ddp__checkpoint_wait(struct ddp_trainer *t);
int ddp__checkpoint_failed(struct ddp_trainer *t);

/* An evaluation of a chain on data; on_sample may be NULL. */
struct ddp__eval;
int ddp__eval_new(struct ddp__eval **out, ddp_t *ddp, ddp_chain_t *chain,
                  ddp_dataset_t *data, const struct ddp_train_config *c,
                  ddp_answer_f on_sample, void *arg);
void ddp__eval_free(struct ddp__eval *e);
/* With the averages for the weights, or NULL for the weights. */
int ddp__eval_run(struct ddp__eval *e, const struct ddp__ema *averages,
                  struct ddp_metrics *m);

#endif
