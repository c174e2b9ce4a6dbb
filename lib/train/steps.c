/* steps.c - run the steps of a trainer: submit them, and count what is done
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/philox.h"
#include "data/dataset.h"
#include "train/metrics.h"
#include "train/plateau.h"
#include "train/steps.h"
#include "train/tracing.h"

/* A stream has no epochs of a known length: its steps, if there are so many,
 * count as those of all epochs. */
static double epoch_at(const struct ddp_trainer *t, int64_t step)
{
    if (!t->loader.steps)
        return (double)step / (double)t->total * (double)t->cfg.epochs;
    return (double)step / (double)t->loader.steps;
}

double ddp__trainer_lr(const struct ddp_trainer *t, int64_t step)
{
    double epochs = epoch_at(t, t->total);

    return t->cfg.optimizer.lr *
           ddp_schedule_factor(&t->cfg.schedule, step, epoch_at(t, step),
                               epochs) *
           ddp__plateau_factor(&t->run.plateau);
}

static double momentum_at(const struct ddp_trainer *t, int64_t step)
{
    return ddp_schedule_momentum(&t->cfg.schedule, step, epoch_at(t, step),
                                 epoch_at(t, t->total));
}

bool ddp__trainer_is_stale(const struct ddp_trainer *t)
{
    return t->cfg.patience && t->run.stale >= t->cfg.patience;
}

/* What averages take of the weights, as timm's ModelEmaV3 with its defaults; 0:
 * 1 - ema_decay. */
static double average_share(const struct ddp_trainer *t, int64_t step)
{
    if (!t->cfg.ema_warmup)
        return 0;
    return fmax(1 - t->cfg.ema_decay, pow(1 + (double)step, -2.0 / 3));
}

struct ddp__step ddp__step_of(const struct ddp_trainer *t, int64_t step,
                              bool update)
{
    int64_t epoch = ddp__loader_place(&t->loader, step).epoch;

    return (struct ddp__step){
        .number = step,
        .subs = ddp__loader_sizes(&t->loader, step, t->sizes),
        .n = t->sizes,
        .seed = ddp__key(t->loader.seed, 1, (uint64_t)epoch),
        .lr = (float)ddp__trainer_lr(t, step),
        .momentum = (float)momentum_at(t, step),
        .average = (float)average_share(t, step),
        .update = update,
        .keep = t->cfg.keep_gradients,
        .first = (uint64_t)step * (uint64_t)t->loader.subs,
    };
}

/* Gradients need no optimizer; a step with the one that nobody chose would
 * train nothing. */
int ddp__trainer_need_optimizer(const struct ddp_trainer *t)
{
    if (t->cfg.optimizer.lr >= 0)
        return 0;
    return ddp__fail(DDP_EINVAL, "there is no optimizer: set that of struct "
                                 "ddp_train_config, for example to "
                                 "ddp_adam(1e-3f)");
}

int ddp__trainer_note_skips(struct ddp_trainer *t, const struct ddp__result *r)
{
    struct ddp_skips *s = &t->skips;

    s->steps = r->skips;
    s->in_a_row = r->skips_in_row;
    s->loss_scale = r->scale;
    if (!r->skipped)
        return 0;
    s->last = t->reported - 1;
    memcpy(s->why, r->why, sizeof(s->why));
    if (s->in_a_row <= t->cfg.max_nan_steps)
        return 0;
    t->diverged = true;
    return ddp__fail(DDP_EDIVERGED,
                     "step %lld: %s; %lld steps in a row were skipped: try a "
                     "smaller learning rate, warm-up or clip_norm",
                     (long long)t->reported, s->why, (long long)s->in_a_row);
}

/* Count a step that is done. */
static int count_step(struct ddp_trainer *t, const struct ddp__result *r)
{
    ddp__status_step(&t->ddp->status, t->reported + 1,
                     ddp__metrics(r->stats).loss);
    if (ddp__loader_place(&t->loader, t->reported++).step == 0) {
        t->run.epoch = (struct ddp_metrics){0};
        t->run.epoch_divisor = 0;
    }
    if (!r->skipped) {
        ddp__metrics_add(&t->run, r->stats);
        t->applied = t->reported;
    }
    t->divisor = r->stats[DDP__STAT_DIVISOR] * r->scale;
    if (t->gradients && !isfinite(r->stats[DDP__STAT_LOSS]))
        return ddp__fail(DDP_EDIVERGED, "the loss of step %lld is not finite",
                         (long long)t->reported);
    return ddp__trainer_note_skips(t, r);
}

int ddp__trainer_settle(struct ddp_trainer *t, int rc)
{
    struct ddp__error why = ddp__error_save();
    int64_t next = ddp__engine_settle(t->engine);
    struct ddp__result r;

    if (next >= 0)
        t->submitted = next;
    if (next >= 0 && t->reported > next) /* its update failed */
        t->reported = next;
    while (t->reported < next)
        if (ddp__engine_wait(t->engine, t->reported, &r) < 0 ||
            count_step(t, &r) < 0)
            break;
    ddp__error_restore(&why);
    return rc;
}

int ddp__trainer_collect(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = ddp__engine_wait(t->engine, t->reported, r);

    if (rc < 0)
        return ddp__trainer_settle(t, rc);
    rc = count_step(t, r);
    return rc < 0 ? rc : ddp__tracing_end(t, false);
}

void ddp__trainer_find_end(struct ddp_trainer *t, int64_t steps)
{
    if (ddp__is_stream(t->loader.data) && !t->cfg.steps &&
        ddp__loader_epoch_ends(&t->loader, steps) &&
        ddp__loader_place(&t->loader, steps - 1).epoch + 1 >= t->cfg.epochs)
        t->total = steps;
}

/* Have the samples of the next step, unless there are none any more. */
static int take_samples(struct ddp_trainer *t)
{
    int rc = ddp__loader_take(&t->loader, t->submitted);

    if (rc == 0)
        ddp__trainer_find_end(t, t->submitted + 1);
    else if (rc > 0)
        t->total = t->submitted;
    return rc;
}

int ddp__trainer_submit(struct ddp_trainer *t, bool update)
{
    struct ddp__step s;
    int rc = take_samples(t);

    if (rc != 0 || (rc = ddp__tracing_begin(t)) < 0)
        return rc;
    s = ddp__step_of(t, t->submitted, update);
    rc = ddp__engine_step(t->engine, &s);
    t->gradients = !update;
    if (rc < 0)
        return ddp__trainer_settle(t, rc);
    t->submitted++;
    return 0;
}

int ddp__trainer_drain(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = 0;

    while (rc == 0 && t->reported < t->submitted)
        rc = ddp__trainer_collect(t, r);
    return rc;
}

int ddp__trainer_submit_next(struct ddp_trainer *t, bool update)
{
    int rc = ddp__trainer_submit(t, update);

    return rc > 0 ? ddp__fail(DDP_EDATA,
                              "the stream has no more samples: it "
                              "ended after %lld steps",
                              (long long)t->submitted)
                  : rc;
}

static int run_step(struct ddp_trainer *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    /* The engine overwrites results older than its run-ahead. */
    while (t->submitted - t->reported >= t->cfg.run_ahead)
        if ((rc = ddp__trainer_collect(t, &r)) < 0)
            return rc;
    if ((rc = ddp__trainer_submit_next(t, true)) < 0 || !m)
        return rc;
    if ((rc = ddp__trainer_drain(t, &r)) < 0)
        return rc;
    *m = ddp__metrics(r.stats);
    m->skipped = r.skipped;
    return 0;
}

int ddp_trainer_step(ddp_trainer_t *t, struct ddp_metrics *m)
{
    int rc;

    if ((rc = ddp__trainer_check(t)) < 0 ||
        (rc = ddp__trainer_need_optimizer(t)) < 0)
        return rc;
    ddp__status_enter(&t->ddp->status, DDP_PHASE_TRAINING);
    rc = run_step(t, m);
    ddp__status_enter(&t->ddp->status, DDP_PHASE_PROGRAM);
    return rc;
}

int ddp__trainer_apply(struct ddp_trainer *t, const float *g, double divisor)
{
    struct ddp__step s = ddp__step_of(t, t->submitted, true);
    struct ddp__result r;
    int rc;

    t->gradients = false;
    if ((rc = ddp__engine_apply(t->engine, &s, g, divisor)) < 0)
        return ddp__trainer_settle(t, rc);
    t->submitted++;
    return ddp__trainer_collect(t, &r);
}

int ddp_trainer_wait(ddp_trainer_t *t)
{
    struct ddp__result r;
    int rc = ddp__trainer_check(t);

    if (rc == 0)
        rc = ddp__trainer_drain(t, &r);
    if (rc < 0 || (rc = ddp__engine_wait_all(t->engine)) == 0)
        return rc;
    return ddp__trainer_settle(t, rc);
}
