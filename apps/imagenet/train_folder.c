/* train_folder.c - the folder of a run of "imagenet train"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "common/interrupt.h"
#include "common/opt_file.h"
#include "checkpoint.h"
#include "names.h"
#include "output.h"
#include "train_folder.h"

bool train_is_writer(const struct run *r)
{
    return ddp_rank(r->ddp) == 0;
}

static void write_config(const void *run, FILE *f)
{
    opts_save(((const struct run *)run)->opts, f);
}

static void write_classes(const void *run, FILE *f)
{
    names_print(((const struct run *)run)->data, f);
}

/* Rank 0 makes the folder that is not given, which all ranks use. */
static int make_output(struct run *r)
{
    char name[512] = "";
    int rc = train_is_writer(r) ? output_new(r->set->model, &r->set->output)
                                : OPTS_GO;
    int sent;

    if (rc == OPTS_GO && r->set->output)
        snprintf(name, sizeof(name), "%s", r->set->output);
    if ((sent = ddp_bcast(r->ddp, name, sizeof(name), 0)) < 0)
        return app_fail(sent);
    if (rc != OPTS_GO || train_is_writer(r))
        return rc;
    if (!*name)
        return EXIT_WRITE; /* rank 0 says why */
    r->set->output = strdup(name);
    return r->set->output ? OPTS_GO : app_exit_code(DDP_ENOMEM);
}

int train_name_folder(struct run *r)
{
    int rc = r->set->output ? OPTS_GO : make_output(r);

    if (rc == OPTS_GO && !(r->ckpt = app_path(r->set->output, CHECKPOINT_DIR)))
        rc = app_exit_code(DDP_ENOMEM);
    return rc;
}

static int begin_file(struct run *r, bool resumed)
{
    const struct run_facts facts = {
        .opts = r->opts,
        .ddp = r->ddp,
        .trainer = r->trainer,
        .data = r->data,
        .val = r->val,
        .chain = r->chain,
        .resumed = resumed,
    };

    return run_file_begin(&r->file, r->set->output, &facts);
}

bool train_ended_early(const struct run *r)
{
    return r->set->patience && r->last.step < r->last.steps;
}

static const char *finished(const struct run *r)
{
    return train_ended_early(r) ? "no better evaluation: --patience"
                                : "complete";
}

void train_end_folder(struct run *r, int code)
{
    const char *why = code == 0             ? finished(r)
                      : code == EXIT_AGAIN  ? interrupt_reason()
                      : *r->record.why != 0 ? r->record.why
                                            : ddp_errmsg();

    run_file_end(&r->file, code, why, ddp_trainer_steps(r->trainer),
                 r->weights);
}

/* The settings of the run in a folder are replaced only when that run is
 * resumed. */
int train_begin_folder(struct run *r)
{
    struct ddp_checkpoint c;
    int rc = train_is_writer(r) ? app_make_dir(r->set->output) : 0;

    if (rc || (rc = checkpoint_resume(r->opts, r->set, r->ckpt, r->trainer,
                                      &c)) != OPTS_GO)
        return rc;
    r->last.step = c.step;
    r->last.epoch_mean = c.epoch_mean;
    r->evaluated = c.evaluated;
    r->result = c.evaluation;
    r->ema_evaluated = c.ema_evaluated;
    r->ema = c.ema_evaluation;
    if (!train_is_writer(r))
        return OPTS_GO;
    rc = output_write(r->set->output, "config.txt", write_config, r);
    if (rc == OPTS_GO)
        rc = output_write(r->set->output, "classes.txt", write_classes, r);
    if (rc == OPTS_GO)
        rc = record_open(&r->record, r->set->output, r->trainer, &c);
    return rc == OPTS_GO ? begin_file(r, c.step > 0) : rc;
}

int train_save_checkpoint(struct run *r)
{
    int rc = ddp_trainer_checkpoint(r->trainer);

    return rc < 0 ? app_fail(rc) : 0;
}

static int save_chain(const struct run *r, const char *path)
{
    return ddp_chain_save(r->chain, path, NULL);
}

static int save_ema(const struct run *r, const char *path)
{
    return ddp_trainer_ema_save(r->trainer, path, NULL);
}

static int save_as(struct run *r, const char *name,
                   int (*save)(const struct run *r, const char *path))
{
    char *path = app_path(r->set->output, "%s", name);
    int rc = path ? save(r, path) : DDP_ENOMEM;

    progress_clear(&r->progress);
    if (rc < 0)
        rc = app_fail(rc);
    else
        app_print("saved %s\n", path);
    free(path);
    return rc;
}

int train_save_weights(struct run *r)
{
    int rc = train_is_writer(r) ? save_as(r, WEIGHTS, save_chain) : 0;

    if (rc == 0)
        r->weights = WEIGHTS;
    if (train_is_writer(r) && rc == 0 && r->set->ema_decay > 0)
        rc = save_as(r, "weights-ema.safetensors", save_ema);
    return rc;
}
