/* train.c - a run: all its steps, with progress
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <sys/resource.h>

#include "base/error.h"
#include "engine/ranks.h"
#include "runtime/devices.h"
#include "train/checkpoints.h"
#include "train/metrics.h"
#include "train/sinks.h"
#include "train/steps.h"
#include "train/tracing.h"
#include "train/trainer.h"

/* What part of the last dt seconds each worker ran tasks. */
static void take_shares(struct ddp_trainer *t, double dt,
                        struct ddp_progress *p)
{
    const struct ddp__task_group *g = &t->engine->group;

    p->workers = ddp__worker_slots();
    p->busy = t->share.busy;
    for (int w = 0; w < p->workers; w++) {
        double exec_s = ddp__task_group_busy(g, w);

        t->share.busy[w] = dt > 0 ? (exec_s - t->share.exec_s[w]) / dt : 0;
        t->share.exec_s[w] = exec_s;
    }
}

/* The time of all workers in each part of a step since the last report. */
static void take_parts(struct ddp_trainer *t, struct ddp_progress *p)
{
    for (int k = 0; k < DDP_STEP_PARTS; k++) {
        double sum = 0;

        for (int w = 0; w < DDP__MAX_WORKERS; w++)
            sum += ddp__task_group_part(&t->engine->group, w, k);
        p->part_seconds[k] = sum - t->share.part_s[k];
        t->share.part_s[k] = sum;
    }
}

/* Smooth the step time; the first steps (plans, page faults) do not count. */
static void take_time(struct ddp_trainer *t, struct ddp_progress *p)
{
    double now = ddp__now(), dt = now - t->last;
    int64_t seen = t->reported - t->begun;

    take_shares(t, dt, p);
    take_parts(t, p);
    p->seconds = t->run.seconds + now - t->begin;
    p->step_seconds = dt;
    p->data_share =
        dt > 0 ? p->part_seconds[DDP_PART_INPUT] / (dt * t->ddp->workers) : 0;
    if (seen <= 3)
        t->step_s = dt;
    else
        t->step_s += (dt - t->step_s) / (seen < 20 ? (double)(seen - 2) : 20.0);
    p->samples_per_s = t->step_s > 0 ? (double)t->step_samples / t->step_s : 0;
    if (t->total != DDP__UNKNOWN)
        p->eta_s = (double)(t->total - t->reported) * t->step_s;
    t->last = now;
}

static size_t memory_peak(void)
{
    struct rusage u;

    return getrusage(RUSAGE_SELF, &u) == 0 ? (size_t)u.ru_maxrss * 1024 : 0;
}

static struct ddp_progress progress(const struct ddp_trainer *t)
{
    const struct ddp__place at = ddp__loader_place(&t->loader, t->reported - 1);
    double steps = (double)t->loader.steps;

    return (struct ddp_progress){
        .step = t->reported,
        .steps = t->total == DDP__UNKNOWN ? 0 : t->total,
        .epoch = at.epoch,
        .epochs = t->cfg.epochs,
        .epoch_share = steps > 0 ? (double)(at.step + 1) / steps : at.last,
        .epoch_mean = ddp__trainer_epoch_mean(t),
        .lr = ddp__trainer_lr(t, t->reported - 1),
        .skipped = t->skips.steps,
        .loss_scale = t->skips.loss_scale,
        .memory_peak = memory_peak(),
    };
}

static int fail_stopped(const struct ddp_trainer *t)
{
    return ddp__fail(DDP_ESTOPPED, "stopped after step %lld",
                     (long long)t->reported);
}

/* Ranks stop all together, after the step whose end tells them all. */
static int want_stop(struct ddp_trainer *t)
{
    if (!ddp__comm_used(t->engine))
        return fail_stopped(t);
    ddp__comm_wish(t->engine, DDP__WISH_STOP);
    return 0;
}

/* Whether on_steps, or on_epoch, is to be called after a step. */
static bool ends_steps(const struct ddp_trainer *t, int64_t step)
{
    return t->cfg.on_steps && step % t->cfg.every_steps == 0;
}

static bool ends_epoch(const struct ddp_trainer *t, int64_t step)
{
    return t->cfg.on_epoch &&
           (ddp__loader_epoch_ends(&t->loader, step) || step == t->total);
}

/* Whether one of them has not been. */
static bool pause_unreported(const struct ddp_trainer *t)
{
    return t->reported > t->run.on_epoch_step &&
           (ends_steps(t, t->reported) || ends_epoch(t, t->reported));
}

/* Call a function of the program. */
static int call_program(struct ddp_trainer *t,
                        int (*fn)(const struct ddp_progress *p, void *arg),
                        const struct ddp_progress *p)
{
    int rc;

    ddp__status_enter(&t->ddp->status, DDP_PHASE_PROGRAM);
    rc = fn(p, t->cfg.arg);
    ddp__status_enter(&t->ddp->status, DDP_PHASE_TRAINING);
    return rc;
}

static int report_pause(struct ddp_trainer *t, const struct ddp_progress *p)
{
    int rc = 0;

    t->run.on_epoch_step = t->reported;
    if (ends_steps(t, t->reported))
        rc = call_program(t, t->cfg.on_steps, p);
    if (rc == 0 && ends_epoch(t, t->reported))
        rc = call_program(t, t->cfg.on_epoch, p);
    t->last = ddp__now();
    return rc ? want_stop(t) : 0;
}

/* What any rank has wished for, which all hear of after the same step. */
static int follow_wishes(struct ddp_trainer *t, unsigned wishes)
{
    if (wishes & DDP__WISH_CHECKPOINT)
        ddp__checkpoints_request(t);
    return wishes & DDP__WISH_STOP ? fail_stopped(t) : 0;
}

static int report_step(struct ddp_trainer *t)
{
    struct ddp__result r;
    struct ddp_progress p;
    int rc;

    if ((rc = ddp__trainer_collect(t, &r)) < 0)
        return rc;
    if (t->reported == t->begun + 1)
        ddp__checkpoints_prepare(t);
    p = progress(t);
    p.now = ddp__metrics(r.stats);
    p.now.skipped = r.skipped;
    p.why = r.skipped ? t->skips.why : NULL;
    p.gradient_norm = r.norm;
    take_time(t, &p);
    ddp__sinks_step(t, &p);
    if (t->cfg.on_step && call_program(t, t->cfg.on_step, &p) &&
        (rc = want_stop(t)) < 0)
        return rc;
    if (pause_unreported(t) && (rc = report_pause(t, &p)) < 0)
        return rc;
    return follow_wishes(t, r.wishes);
}

/* Steps may be submitted ahead, but not past a step whose weights are needed:
 * by a callback between steps, or by a checkpoint. */
static bool may_submit(const struct ddp_trainer *t)
{
    bool boundary = ends_steps(t, t->submitted) || ends_epoch(t, t->submitted);

    if (t->submitted >= t->total || ddp__trainer_is_stale(t) ||
        t->submitted - t->reported >= t->cfg.run_ahead ||
        ddp__checkpoints_due(t))
        return false;
    return !boundary || t->reported == t->submitted;
}

static int save_checkpoint(struct ddp_trainer *t)
{
    int rc = ddp__checkpoints_save(t);

    t->last = ddp__now();
    return rc;
}

static int advance_run(struct ddp_trainer *t)
{
    int rc = ddp__checkpoints_failed(t);

    if (rc < 0)
        return rc;
    if (may_submit(t))
        return (rc = ddp__trainer_submit(t, true)) > 0 ? 0 : rc;
    return t->reported < t->submitted ? report_step(t) : save_checkpoint(t);
}

/* A stop between the end of a step and its callback. */
static int catch_up(struct ddp_trainer *t)
{
    struct ddp_progress p;

    if (t->reported < t->submitted || !pause_unreported(t))
        return 0;
    p = progress(t);
    return report_pause(t, &p);
}

/* Also completes the submitted steps, and a checkpoint that was requested.
 * Rank 0 writes, and all end as it does. */
static int stop_run(struct ddp_trainer *t)
{
    struct ddp__result r;
    int rc;

    if ((rc = ddp__trainer_drain(t, &r)) < 0)
        return rc;
    if (ddp__checkpoints_requested(t) && (rc = save_checkpoint(t)) == 0)
        rc = ddp__checkpoints_wait(t);
    if ((rc = ddp__ranks_agree(t->ddp, rc)) < 0)
        return rc;
    return ddp__fail(DDP_ESTOPPED, "stopped after step %lld",
                     (long long)t->reported);
}

/* A loss scale that is too large may skip any number of steps, in the hope that
 * later ones are applied: at the end there are none. */
static int check_end(struct ddp_trainer *t)
{
    int64_t skipped = t->reported - t->applied;

    if (!skipped || (skipped <= t->cfg.max_nan_steps && t->applied > 0))
        return 0;
    t->diverged = true;
    return ddp__fail(DDP_EDIVERGED,
                     "the last %lld of %lld steps were skipped: %s; try a "
                     "smaller learning rate, more steps, or f32",
                     (long long)skipped, (long long)t->reported, t->skips.why);
}

static bool is_over(const struct ddp_trainer *t)
{
    return t->reported == t->total ||
           (ddp__trainer_is_stale(t) && t->reported == t->submitted);
}

static int run_steps(struct ddp_trainer *t)
{
    int rc = ddp__ranks_agree(t->ddp, ddp__checkpoints_begin(t));

    if (rc == 0)
        rc = catch_up(t);
    while (rc == 0 && !is_over(t))
        rc = advance_run(t);
    if (rc == DDP_ESTOPPED)
        return stop_run(t);
    if (rc == 0)
        rc = check_end(t);
    if (rc == 0 && ddp__checkpoints_due(t))
        rc = save_checkpoint(t);
    return rc < 0 ? rc : ddp__ranks_agree(t->ddp, ddp__checkpoints_wait(t));
}

/* Of a run that ends before all of it is there. */
static int end_trace(struct ddp_trainer *t, int rc)
{
    struct ddp__error why = ddp__error_save();
    int end = ddp__tracing_end(t, true);

    if (rc == 0)
        return end;
    ddp__error_restore(&why);
    return rc;
}

int ddp_trainer_train(ddp_trainer_t *t)
{
    int rc;

    if ((rc = ddp__trainer_check(t)) < 0 ||
        (rc = ddp__trainer_need_optimizer(t)) < 0)
        return rc;
    t->begin = t->last = ddp__now();
    t->training = true;
    ddp__sinks_run(t);
    ddp__comm_unwish(t->engine, DDP__WISH_STOP | DDP__WISH_CHECKPOINT);
    ddp__status_enter(&t->ddp->status, DDP_PHASE_TRAINING);
    rc = run_steps(t);
    ddp__status_enter(&t->ddp->status, DDP_PHASE_PROGRAM);
    t->training = false;
    t->run.seconds += ddp__now() - t->begin;
    if (rc < 0 && rc != DDP_ESTOPPED)
        rc = ddp__checkpoints_rescue(t, rc);
    rc = end_trace(t, rc);
    ddp__sinks_end(t, rc);
    return rc;
}
