/* trainer.h - what the files of the trainer share */
#ifndef DDP_TRAINER_H
#define DDP_TRAINER_H

#include "engine.h"
#include "loader.h"

struct ddp_trainer {
    ddp_t *ddp; /* not owned, like chain and data */
    ddp_chain_t *chain;
    struct ddp_train_config cfg; /* resolved: no zeros that mean a default */
    struct ddp__loader loader;
    struct ddp__engine *engine;
    int *sizes; /* of a step's sub-batches; owned */
    int64_t total, submitted, reported;
    struct ddp__loader eval_loader;
    struct ddp__engine *eval; /* for eval_data; made at first use */
    ddp_dataset_t *eval_data; /* not owned */
    double begin, last, step_s, data_s;
    struct ddp_metrics epoch; /* sums */
    double epoch_divisor;
    bool gradients; /* the last step left gradients, of this divisor */
    double divisor;
};

/* The engine's specification for the loader's data. */
struct ddp__engine_spec ddp__trainer_spec(const struct ddp_trainer *t,
                                          struct ddp__loader *l,
                                          enum ddp__mode mode);
/* Submit the next step, with its update or leaving gradients. */
int ddp__trainer_submit(struct ddp_trainer *t, bool update);
/* Wait for the oldest step that was not reported; or for all of them. */
int ddp__trainer_collect(struct ddp_trainer *t, struct ddp__result *r);
int ddp__trainer_drain(struct ddp_trainer *t, struct ddp__result *r);
/* The learning rate of a step. */
double ddp__trainer_lr(const struct ddp_trainer *t, int64_t step);
struct ddp_metrics ddp__metrics(const double *stats);

#endif
