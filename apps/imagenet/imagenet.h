/* imagenet.h - what the files of the program imagenet share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef IMAGENET_H
#define IMAGENET_H

#include "ddp.h"
#include "common/opt.h"

/* The values of all options; each command has some of them. */
struct settings {
    /* what to read */
    char *data, *val_data;
    int split;
    int64_t img_size, resize, shift, max_pixels;
    double min_area, erase, mean[3], std[3], max_bad;
    int augment;
    bool no_flip, upright;
    /* the network */
    char *model, *weights;
    int64_t classes, width;
    int hidden[OPT_WIDTHS_MAX + 1];
    bool small_stem, no_aux, zero_init_residual, partial_weights;
    int dtype, tta;
    /* the run */
    int64_t epochs, steps, batch, batch_per_device, sub_batch, lanes, seed;
    int opt, sched;
    double lr, lr_base, lr_base_size, momentum, betas[2], eps, weight_decay;
    double clip_grad, smoothing, drop, drop_path, ema_decay;
    int64_t max_nan_steps;
    double warmup_epochs, warmup_lr, decay_epochs, decay_rate, min_lr;
    bool decay_all;
    /* what to leave behind, and what to say */
    char *output;
    int64_t eval_every, log_every;
    char *resume, *ckpt_every;
    int64_t keep_last, save_every;
    bool no_val;
    double time_limit;
    /* answers */
    char **input, *list, *class_map, *per_class;
    int64_t topk;
    int format;
    /* convert */
    char *strip_prefix, *add_prefix, *drop_names;
    /* where to run */
    int64_t workers;
    int backend;
    /* data synth */
    int64_t train_count, val_count, size;
};

/* Rows of the tables: options.c. */
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
enum { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSONL };

extern const struct opt_command train_command, eval_command, infer_command;
extern const struct opt_command convert_command, export_command;
extern const struct opt_command inspect_command, check_command, synth_command;

/* The commands: each returns the program's exit code. */
int train_run(struct opts *o, struct settings *s);
int eval_run(struct opts *o, struct settings *s);
int convert_run(struct opts *o, struct settings *s);
int infer_run(struct opts *o, struct settings *s);
int inspect_run(struct opts *o, struct settings *s);
int check_run(struct opts *o, struct settings *s);
int export_run(struct opts *o, struct settings *s);
int synth_run(struct opts *o, struct settings *s);

/* ---- setup.c: from settings to what the library takes ---------- */

/* Is there such a model?  OPTS_GO, or exit code 2 after a message. */
int setup_model_known(const struct opts *o, const struct settings *s);

/* Is the file of --weights, if given, there? */
int setup_weights_there(const struct opts *o, const struct settings *s);

/* The network; NULL after a failure of the library. */
ddp_chain_t *setup_model(const struct settings *s);

/* Open a split of a folder: the exit code, or OPTS_GO, *d, and s->img_size. */
int setup_data(const struct opts *o, struct settings *s, const char *dir,
               enum ddp_split split, ddp_dataset_t **d);

/* Images without classes; the exit code, or OPTS_GO, *d, and s->img_size. */
int setup_images(struct settings *s, const char *const *path, int64_t n,
                 ddp_dataset_t **d);

/* Start the devices; its exit code, or OPTS_GO and *ddp. */
int setup_devices(const struct settings *s, ddp_t **ddp);

/* The number of trained parameters. */
size_t setup_params(const ddp_chain_t *c);

enum ddp_dtype setup_dtype(const struct settings *s);
const char *setup_dtype_name(const struct settings *s);
enum ddp_tta setup_tta(const struct settings *s);

/* ---- names.c: lines of a text file ----------------------------- */

struct names {
    char **name; /* owned, each one too */
    int64_t count;
};

/* Append the lines of a file ("-": stdin) that are not empty.  OPTS_GO or the
 * exit code after a message. */
int names_read(struct names *n, const char *path);
int names_add(struct names *n, const char *name);
void names_free(struct names *n);

/* ---- answer.c: the best classes of a sample -------------------- */

struct top {
    int class;
    double share; /* its probability */
};

/* The k best of len classes, best first: of equal ones the lower. */
void answer_top(const float *output, int len, int k, struct top *top);

/* One image in one of the formats, with k classes, or why there are none. */
struct answer {
    const char *path, *why; /* why: NULL if it could be read */
    const struct top *top;
    int k;
    const struct names *names; /* of classes; empty: they have none */
};
void answer_print(const struct answer *a, int format, FILE *f);
void answer_print_head(int format, FILE *f);

/* ---- classes.c: an evaluation class by class ------------------- */

struct classes {
    int count;
    struct class_row {
        int64_t n, top1, top5;
    } * row; /* owned */
    struct confusion {
        int label, taken_for;
    } * wrong; /* owned */
    size_t wrongs, room;
};

/* false: no memory. */
bool classes_new(struct classes *c, int count);
bool classes_add(struct classes *c, int label, const struct top *top, int k);
/* As CSV to a file, "-": stdout; the exit code. */
int classes_print(struct classes *c, const ddp_dataset_t *d, const char *path);
void classes_free(struct classes *c);

/* ---- weights.c: --weights FILE --------------------------------- */

/* A file of the run that weights are of: beside them, or above its checkpoints.
 * To free; NULL: no memory. */
char *setup_file_near(const char *weights, const char *name);

/* Take over what config.txt beside the weights says of the network: OPTS_GO,
 * also without such a file, or the exit code.  What is taken is said. */
int setup_weights_config(struct opts *o, const char *weights, FILE *say);

/* All that --weights and what is beside it say of a finished run: OPTS_GO or
 * the exit code. */
int setup_trained(struct opts *o, struct settings *s, FILE *say);

/* Load them, and say what does not fit: OPTS_GO, or the exit code.  new_head:
 * the last layer may have another number of classes; it is random then. */
int setup_weights_load(const struct settings *s, ddp_chain_t *c, bool new_head);

/* ---- checkpoint.c: what a run leaves to go on from ------------- */

#define CHECKPOINT_DIR "ckpt" /* in the folder of the run */

/* Refuse a --ckpt-every that cannot be read. */
int checkpoint_check(const struct opts *o, const struct settings *s);

/* When and where checkpoints are written; own is the folder for them. */
void checkpoint_config(const struct settings *s, const char *own,
                       struct ddp_checkpoint_config *c);

/* Say what to do after a write that failed. */
void checkpoint_advise(const char *own);

/* Go on as --resume says.  OPTS_GO, with *c zeroed when there is nothing to go
 * on from, or the exit code. */
int checkpoint_resume(const struct opts *o, const struct settings *s,
                      const char *own, ddp_trainer_t *t,
                      struct ddp_checkpoint *c);

/* ---- plan.c: the numbers of a run ------------------------------ */

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
