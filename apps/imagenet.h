/* imagenet.h - what the files of the program imagenet share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef IMAGENET_H
#define IMAGENET_H

#include "ddp.h"
#include "opt.h"

/* The values of all options; each command has some of them. */
struct settings {
    /* what to read */
    char *data, *val_data;
    int split;
    int64_t img_size, resize, shift, max_pixels;
    double min_area, mean[3], std[3], max_bad;
    int augment;
    bool no_flip, upright;
    /* the network */
    char *model, *weights;
    int64_t classes, width;
    int hidden[OPT_WIDTHS_MAX + 1];
    bool small_stem, zero_init_residual;
    int dtype;
    /* the run */
    int64_t epochs, steps, batch, batch_per_device, sub_batch, lanes, seed;
    int opt, sched;
    double lr, lr_base, lr_base_size, momentum, betas[2], eps, weight_decay;
    double clip_grad, smoothing;
    double warmup_epochs, warmup_lr, decay_epochs, decay_rate, min_lr;
    bool decay_all;
    /* what to leave behind, and what to say */
    char *output;
    int64_t save_every, eval_every, log_every;
    bool no_val;
    /* where to run */
    int64_t workers;
    int backend;
    /* data synth */
    int64_t train_count, val_count, size;
};

/* Rows of the tables: imagenet_options.c. */
enum {
    OPT_SGD,
    OPT_MOMENTUM,
    OPT_NESTEROV,
    OPT_FLUX_MOMENTUM,
    OPT_ADAM,
    OPT_ADAMW,
    OPT_RMSPROP
};
enum { SCHED_CONSTANT, SCHED_STEP, SCHED_COSINE, SCHED_LINEAR, SCHED_ONECYCLE };
extern const struct opt_command train_command, eval_command, inspect_command;
extern const struct opt_command check_command, synth_command;

/* The commands: each returns the program's exit code. */
int train_run(struct opts *o, struct settings *s);
int eval_run(struct opts *o, struct settings *s);
int inspect_run(struct opts *o, struct settings *s);
int check_run(struct opts *o, struct settings *s);
int synth_run(struct opts *o, struct settings *s);

/* ---- imagenet_setup.c: from settings to what the library takes ---------- */

/* Is there such a model?  OPTS_GO, or exit code 2 after a message. */
int setup_model_known(const struct opts *o, const struct settings *s);

/* Is the file of --weights, if given, there? */
int setup_weights_there(const struct opts *o, const struct settings *s);

/* The network; NULL after a failure of the library. */
ddp_chain_t *setup_model(const struct settings *s);

/* Open a split of a folder: the exit code, or OPTS_GO, *d, and s->img_size. */
int setup_data(const struct opts *o, struct settings *s, const char *dir,
               enum ddp_split split, ddp_dataset_t **d);

/* Start the devices; its exit code, or OPTS_GO and *ddp. */
int setup_devices(const struct settings *s, ddp_t **ddp);

/* The number of trained parameters. */
size_t setup_params(const ddp_chain_t *c);

enum ddp_dtype setup_dtype(const struct settings *s);

/* ---- imagenet_plan.c: the numbers of a run ------------------------------ */

/* Refuse options that mean nothing beside the others. */
int plan_check(const struct opts *o, const struct settings *s);

/* Fill in what was left to be derived: the global batch, lanes, lr, epochs.
 * OPTS_GO or the exit code. */
int plan_resolve(const struct opts *o, struct settings *s, int devices,
                 int64_t count);

/* Steps of an epoch: every sample once, the last step may be smaller. */
int64_t plan_epoch_steps(const struct settings *s, int64_t count);

/* The library's configuration of a resolved plan. */
void plan_config(const struct opts *o, const struct settings *s,
                 struct ddp_train_config *cfg);

#endif
