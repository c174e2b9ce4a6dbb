/* resume.c - a trainer continues from a checkpoint
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "checkpoint/changes.h"
#include "checkpoint/files.h"
#include "checkpoint/read.h"
#include "engine/ranks.h"
#include "train/checkpoints.h"
#include "train/metrics.h"
#include "train/resume.h"
#include "train/snapshot.h"
#include "train/steps.h"

/* Where a trainer looks for checkpoints, and what it finds. */
struct search {
    struct ddp_trainer *t;
    const char *dir;
    bool own; /* the folder that it writes to */
    struct ddp__changes changes;
    struct ddp_checkpoint *found;
};

/* ---- what was found ----------------------------------------------------- */

/* Does nothing if the devices are the same. */
static void compare_devices(const struct ddp_trainer *t, char *notice,
                            size_t size)
{
    char devices[sizeof(t->run.devices)];

    ddp__snapshot_devices(t->ddp, devices, sizeof(devices));
    if (strcmp(t->run.devices, devices))
        snprintf(
            notice, size,
            "the steps so far ran on %s, the following run on %s: bits may "
            "differ from those of a run without this change",
            t->run.devices, devices);
}

static void fill_info(const struct ddp_trainer *t, const char *path,
                      struct ddp_checkpoint *c)
{
    const struct ddp__run *r = &t->run;

    snprintf(c->path, sizeof(c->path), "%s", path);
    c->step = t->submitted;
    c->epoch_mean = ddp__trainer_epoch_mean(t);
    c->evaluated = r->evaluated;
    c->evaluation = r->evaluation;
    c->best = r->best;
    c->best_evaluation = r->best_evaluation;
    c->ema_evaluated = r->ema_evaluated;
    c->ema_evaluation = r->ema_evaluation;
    compare_devices(t, c->notice, sizeof(c->notice));
}

/* ---- its state ---------------------------------------------------------- */

/* What was changed before, and now: checkpoints to come have it. */
static int list_changes(struct ddp__run *r, const char *now)
{
    json_t *all = r->changes ? json_deep_copy(r->changes) : json_array();
    bool good = all;

    if (*now)
        good = json_array_append_new(all, json_pack("{s:I, s:s}", "step",
                                                    (json_int_t)r->step,
                                                    "settings", now)) == 0;
    if (good) {
        r->changes = all;
        return 0;
    }
    json_decref(all);
    return ddp__fail(DDP_ENOMEM, "out of memory for a run's changes");
}

/* Epochs of another length give all steps other numbers, by which checkpoints
 * are named. */
static int renumber_steps(struct search *s, const char *path,
                          const json_t *state, struct ddp__run *run)
{
    int64_t from = ddp__state_epoch_steps(state), to = s->t->loader.steps;

    if (from == to || from == 0)
        return 0;
    if (s->own) {
        s->changes.names[0] = 0; /* to allow them is not enough */
        return ddp__fail(
            DDP_EINVAL,
            "%s: an epoch had %lld steps and has %lld now, so that "
            "the names of the checkpoints would be mixed up: "
            "write those to come to another folder",
            path, (long long)from, (long long)to);
    }
    ddp__run_renumber(run, from, to);
    return 0;
}

static int parse_state(struct search *s, const char *path, const json_t *state,
                       struct ddp__run *run)
{
    int rc;

    if ((rc = ddp__state_parse(state, path, run)) < 0 ||
        (rc = renumber_steps(s, path, state, run)) < 0)
        return rc;
    if (run->step > s->t->total)
        return ddp__fail(DDP_EINVAL,
                         "%s has %lld steps, more than the %lld of this run",
                         path, (long long)run->step, (long long)s->t->total);
    return list_changes(run, s->changes.text);
}

static int restore_engine(struct ddp_trainer *t, const struct ddp__run *run,
                          struct ddp__ckpt_copy *copy)
{
    int rc;

    if ((rc = ddp__loss_scaler_set(t->engine, run->scaler)) < 0 ||
        (rc = ddp__ckpt_copy_restore(copy, t->engine)) < 0)
        return rc;
    if (t->engine->ema)
        t->engine->ema->begun = true;
    ddp__engine_begin(t->engine, run->step);
    return 0;
}

int ddp__resume_state(struct ddp_trainer *t, struct ddp__run *run,
                      struct ddp__ckpt_copy *copy)
{
    int rc = restore_engine(t, run, copy);

    if (rc < 0) {
        json_decref(run->changes);
        return rc;
    }
    json_decref(t->run.changes);
    t->run = *run;
    t->begun = t->submitted = t->reported = t->applied = run->step;
    if (ddp__is_stream(t->loader.data)) {
        ddp__stream_seek(t->loader.data, run->step, &run->place);
        ddp__trainer_find_end(t, run->step);
    }
    return 0;
}

/* Everything has been read and verified before the trainer changes. */
static int restore_state(struct search *s, const char *path,
                         struct ddp__ckpt_copy *copy)
{
    struct ddp__run run;
    int rc = parse_state(s, path, copy->state, &run);

    return rc < 0 ? rc : ddp__resume_state(s->t, &run, copy);
}

/* ---- finding it --------------------------------------------------------- */

static int load_one(struct search *s, const char *path)
{
    struct ddp__ckpt_copy copy;
    json_t *settings;
    int rc = ddp__snapshot_settings(s->t, &settings);

    if (rc < 0)
        return rc;
    if ((rc = ddp__ckpt_copy_new(&copy, s->t->engine)) == 0 &&
        (rc = ddp__ckpt_read(path, settings, &s->changes, &copy)) == 0)
        rc = restore_state(s, path, &copy);
    ddp__ckpt_copy_free(&copy);
    json_decref(settings);
    if (rc == 0)
        fill_info(s->t, path, s->found);
    return rc < 0 ? rc : 1;
}

/* The newest checkpoint that can be read; damaged ones are skipped. */
static int load_newest(struct search *s, const int64_t *step, int64_t n)
{
    struct ddp__error before = ddp__error_save();
    struct ddp_checkpoint *c = s->found;
    char name[DDP__CKPT_NAME_MAX], *path;
    int rc = 0;

    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), DDP__CKPT_NAME, (long long)step[i]);
        if (!(path = ddp__path_join(s->dir, name)))
            return DDP_ENOMEM;
        rc = load_one(s, path);
        free(path);
        if (rc > 0)
            ddp__error_restore(&before);
        if (rc != DDP_EDATA && rc != DDP_EIO)
            return rc;
        if (c->skipped++ == 0)
            snprintf(c->why, sizeof(c->why), "%s", ddp_errmsg());
    }
    return n ? ddp__fail(DDP_EDATA,
                         "none of the %lld checkpoints in %s can be used; the "
                         "newest: %s",
                         (long long)n, s->dir, c->why)
             : 0;
}

static int load_from(struct search *s)
{
    int64_t *step, n;
    int rc;

    if (ddp__file_exists(s->dir, DDP__CKPT_MANIFEST))
        return load_one(s, s->dir);
    if ((n = ddp__ckpt_list(s->dir, &step)) < 0)
        return (int)n;
    rc = load_newest(s, step, n);
    free(step);
    return rc;
}

/* ---- the calls ---------------------------------------------------------- */

static const struct ddp_resume_options defaults = {.struct_size =
                                                       sizeof(defaults)};

void ddp_resume_options_init_sized(struct ddp_resume_options *o, size_t size)
{
    ddp__options_init(o, size, &defaults, sizeof(defaults));
}

/* What rank 0 has found, for all. */
struct choice {
    char path[sizeof(((struct ddp_checkpoint *)0)->path)];
    bool found;
};

/* Rank 0 looks for the checkpoint; the others load the same one. */
static int load_together(struct search *s)
{
    struct ddp_trainer *t = s->t;
    struct choice mine = {.found = false}, *all;
    bool first = t->ddp->net.wire.rank == 0;
    int rc = first ? load_from(s) : 0;

    if ((rc = ddp__ranks_agree(t->ddp, rc)) < 0)
        return rc;
    if (!(all = calloc((size_t)t->ddp->net.wire.count, sizeof(*all))))
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    mine.found = rc == 1;
    snprintf(mine.path, sizeof(mine.path), "%s", s->found->path);
    if (ddp__ranks_gather(t->ddp, &mine, sizeof(mine), all) < 0)
        rc = ddp_errcode();
    else if (!first && all[0].found)
        rc = load_one(s, all[0].path);
    free(all);
    return ddp__ranks_agree(t->ddp, rc);
}

static int find_checkpoint(struct search *s)
{
    struct ddp_trainer *t = s->t;
    const char *folder = ddp__checkpoints_folder(t);
    int rc = 0;

    if (t->submitted)
        return ddp__fail(DDP_EINVAL, "ddp_trainer_resume() must be called "
                                     "before the trainer's first step");
    if (!s->dir && !folder)
        return ddp__fail(DDP_EINVAL, "the trainer has no checkpoint.dir");
    s->own = !s->dir || (folder && !strcmp(s->dir, folder));
    if (s->own) {
        s->dir = folder;
        rc = ddp__checkpoints_open(t);
    }
    rc = ddp__ranks_agree(t->ddp, rc);
    if (rc < 0 || (rc = load_together(s)) < 0 || !s->own)
        return rc;
    ddp__checkpoints_resumed(t, rc == 1 ? s->found->step : -1);
    return rc;
}

int ddp_trainer_resume_with(ddp_trainer_t *t, const char *dir,
                            const struct ddp_resume_options *given,
                            struct ddp_checkpoint *c)
{
    struct ddp_resume_options o = defaults;
    struct ddp_checkpoint none = {0};
    struct search s = {.t = t, .dir = dir, .found = c ? c : &none};
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    *s.found = (struct ddp_checkpoint){0};
    if ((rc = ddp__options_copy(&o, sizeof(o), given, "ddp_resume_options")) <
            0 ||
        (rc = ddp__changes_check(o.changed)) < 0)
        return rc;
    s.changes.allowed = o.changed;
    rc = find_checkpoint(&s);
    snprintf(s.found->changed, sizeof(s.found->changed), "%s", s.changes.names);
    snprintf(s.found->changes, sizeof(s.found->changes), "%s", s.changes.text);
    return rc;
}

int ddp_trainer_resume(ddp_trainer_t *t, const char *dir,
                       struct ddp_checkpoint *c)
{
    return ddp_trainer_resume_with(t, dir, NULL, c);
}
