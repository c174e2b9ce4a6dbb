/* train.c - a run: all its steps, with progress */
#include "config.h"

#include "trainer.h"

static void add_epoch(struct ddp_trainer *t, const double *s)
{
    t->epoch.samples += (int64_t)s[DDP__STAT_COUNT];
    t->epoch.loss += s[DDP__STAT_LOSS];
    t->epoch.top1 += s[DDP__STAT_TOP1];
    t->epoch.top5 += s[DDP__STAT_TOP5];
    t->epoch.top10 += s[DDP__STAT_TOP10];
    t->epoch_divisor += s[DDP__STAT_DIVISOR];
}

static struct ddp_metrics epoch_mean(const struct ddp_trainer *t)
{
    double s[DDP__STATS] = {
        [DDP__STAT_LOSS] = t->epoch.loss,
        [DDP__STAT_DIVISOR] = t->epoch_divisor,
        [DDP__STAT_COUNT] = (double)t->epoch.samples,
        [DDP__STAT_TOP1] = t->epoch.top1,
        [DDP__STAT_TOP5] = t->epoch.top5,
        [DDP__STAT_TOP10] = t->epoch.top10,
    };

    return ddp__metrics(s);
}

/* Smooth the step time; the first steps (plans, page faults) do not count. */
static void take_time(struct ddp_trainer *t, struct ddp_progress *p)
{
    double now = ddp__now(), dt = now - t->last, data = 0;
    int64_t seen = t->reported;

    for (int w = 0; w < DDP__MAX_WORKERS; w++)
        data += t->engine->flow.busy[w].data_s;
    p->seconds = now - t->begin;
    p->step_seconds = dt;
    p->data_share = dt > 0 ? (data - t->data_s) / (dt * t->ddp->workers) : 0;
    if (seen <= 3)
        t->step_s = dt;
    else
        t->step_s += (dt - t->step_s) / (seen < 20 ? (double)(seen - 2) : 20.0);
    p->samples_per_s = t->step_s > 0 ? t->cfg.batch / t->step_s : 0;
    p->eta_s = (double)(t->total - seen) * t->step_s;
    t->last = now;
    t->data_s = data;
}

static struct ddp_progress progress(struct ddp_trainer *t,
                                    const struct ddp__result *r)
{
    int64_t in_epoch = (t->reported - 1) % t->loader.steps + 1;
    struct ddp_progress p = {
        .step = t->reported,
        .steps = t->total,
        .epoch = (t->reported - 1) / t->loader.steps,
        .epochs = t->cfg.epochs,
        .epoch_share = (double)in_epoch / (double)t->loader.steps,
        .now = ddp__metrics(r->stats),
        .lr = ddp__trainer_lr(t, t->reported - 1),
    };

    if (in_epoch == 1) {
        t->epoch = (struct ddp_metrics){0};
        t->epoch_divisor = 0;
    }
    add_epoch(t, r->stats);
    p.epoch_mean = epoch_mean(t);
    take_time(t, &p);
    return p;
}

static int report(struct ddp_trainer *t)
{
    struct ddp__result r;
    struct ddp_progress p;
    int rc;

    if ((rc = ddp__trainer_collect(t, &r)) < 0)
        return rc;
    p = progress(t, &r);
    rc = t->cfg.on_step ? t->cfg.on_step(&p, t->cfg.arg) : 0;
    if (rc == 0 && t->cfg.on_epoch &&
        (p.epoch_share == 1 || t->reported == t->total)) {
        rc = t->cfg.on_epoch(&p, t->cfg.arg);
        t->last = ddp__now();
    }
    return rc ? ddp__fail(DDP_ESTOPPED, "stopped at step %lld",
                          (long long)t->reported)
              : 0;
}

/* Steps may be submitted ahead, but not past the end of an epoch whose
 * callback shall see the weights of that moment. */
static bool may_submit(const struct ddp_trainer *t)
{
    bool boundary = t->cfg.on_epoch && t->submitted % t->loader.steps == 0;

    if (t->submitted >= t->total ||
        t->submitted - t->reported >= t->cfg.run_ahead)
        return false;
    return !boundary || t->reported == t->submitted;
}

int ddp_train(ddp_trainer_t *t)
{
    struct ddp__result r;
    int rc = 0;

    if (!t)
        return DDP_EINVAL; /* ddp_trainer_new() said why */
    t->begin = t->last = ddp__now();
    while (rc == 0 && t->reported < t->total)
        rc = may_submit(t) ? ddp__trainer_submit(t, true) : report(t);
    if (rc == DDP_ESTOPPED && ddp__trainer_drain(t, &r) == 0)
        ddp__fail(rc, "stopped after step %lld", (long long)t->reported);
    return rc;
}
