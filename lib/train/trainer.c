/* trainer.c - create a trainer, and run its steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/options.h"
#include "base/philox.h"
#include "data/dataset.h"
#include "engine/step.h"
#include "graph/param_values.h"
#include "runtime/devices.h"
#include "runtime/trace.h"
#include "train/agree.h"
#include "train/checkpoints.h"
#include "train/evaluate.h"
#include "train/groups.h"
#include "train/memory.h"
#include "train/own.h"
#include "train/plateau.h"
#include "train/sinks.h"
#include "train/tracing.h"
#include "train/trainer.h"

enum { RING_BYTES = 256 << 20 }; /* most input that is read ahead */

/* ---- making ------------------------------------------------------------- */

static int ring_length(const struct ddp_train_config *c, const ddp_dataset_t *d,
                       int subs)
{
    size_t bytes =
        ddp__dataset_x_size(d) * (size_t)c->sub_batch * (size_t)c->lanes;
    int wish = (subs + c->lanes - 1) / c->lanes * c->run_ahead;
    int most = (int)(RING_BYTES / (bytes ? bytes : 1));

    wish = wish < most ? wish : most;
    return wish < 2 ? 2 : wish;
}

/* The fewest samples that share statistics; 0: this rank does not know. */
static int least_shared(const struct ddp_train_config *c,
                        const struct ddp__loader *l)
{
    if (!c->sync_bn)
        return ddp__loader_least(l);
    return c->own_data ? 0 : ddp__loader_least_step(l);
}

/* One mapping for training and evaluation; only training has an optimizer
 * and averages. */
struct ddp__engine_spec ddp__engine_spec(const struct ddp_train_config *c,
                                         struct ddp__loader *l,
                                         enum ddp__mode mode)
{
    const ddp_dataset_t *d = l->data;
    struct ddp__engine_spec s = {
        .graph = {.mode = mode,
                  .shape = d->shape,
                  .type = d->type,
                  .dtype = c->dtype,
                  .cap = c->sub_batch,
                  .sync_bn = c->sync_bn && mode == DDP__TRAIN,
                  .least = least_shared(c, l),
                  .classes = d->classes,
                  .target_len = d->target_len,
                  .shares = l->shares,
                  .loss = {.kind = c->loss,
                           .smoothing =
                               l->class_weight ? 0 : c->label_smoothing,
                           .fn = c->loss_fn,
                           .arg = c->loss_arg,
                           .threshold = c->target_threshold,
                           .gamma = c->focal_gamma,
                           .alpha = c->focal_alpha,
                           .positives = l->pos_weight != NULL,
                           .taught = mode == DDP__TRAIN && c->teacher
                                         ? (float)c->distill_weight
                                         : 0},
                  .teach = {.chain = mode == DDP__TRAIN ? c->teacher : NULL,
                            .weight = c->distill_weight,
                            .temperature = c->distill_temperature},
                  .fill = ddp__loader_fill,
                  .arg = l},
        .lanes = c->lanes,
        .run_ahead = c->run_ahead,
        .ring = ring_length(c, d, l->subs),
        .optimizer = mode == DDP__TRAIN ? &c->optimizer : NULL,
        .ema_decay = mode == DDP__TRAIN ? c->ema_decay : 0,
        .wire = c->wire,
        .shard = c->shard_optimizer,
        .shared = true,
        .own = c->own_data && mode == DDP__TRAIN,
    };

    ddp__loader_fewer(l, s.graph.fewer);
    memcpy(s.graph.mean, d->mean, sizeof(s.graph.mean));
    memcpy(s.graph.std, d->std, sizeof(s.graph.std));
    return s;
}

static int configure(struct ddp_trainer *t, ddp_dataset_t *data,
                     const struct ddp_train_config *cfg)
{
    int rc;

    if ((rc = ddp__options_copy(&t->cfg, sizeof(t->cfg), cfg,
                                "ddp_train_config")) < 0 ||
        (rc = ddp_train_config_resolve(&t->cfg, t->ddp, data)) < 0 ||
        (rc = ddp__sinks_copy(t)) < 0 || (rc = ddp__groups_resolve(t)) < 0)
        return rc;
    if (t->cfg.teacher == t->chain)
        return ddp__fail(DDP_EINVAL, "the teacher is the chain itself, "
                                     "expected another one");
    if (data->count == 0 && !ddp__is_stream(data))
        return ddp__fail(DDP_EINVAL, "the data have no samples");
    if (data->classes == 1)
        return ddp__fail(DDP_EINVAL, "the data have one class, expected two or "
                                     "more: there is nothing to learn");
    t->loader = ddp__loader(data, t->cfg.batch, t->cfg.sub_batch);
    if (t->cfg.drop_last)
        ddp__loader_drop_last(&t->loader);
    t->loader.seed = t->cfg.seed;
    t->loader.shuffle = t->cfg.order == DDP_SHUFFLE;
    t->loader.repeats = t->cfg.repeats;
    t->loader.replace = true;
    t->loader.mix =
        (struct ddp__mix){t->cfg.mixup, t->cfg.cutmix, t->cfg.mix_prob,
                          t->cfg.mix_switch_prob, t->cfg.mix_off_epoch};
    t->loader.class_weight = t->cfg.class_weights;
    t->loader.pos_weight = t->cfg.pos_weight;
    t->loader.smoothing = t->cfg.label_smoothing;
    t->loader.shares =
        data->classes > 0 &&
        (ddp__dataset_has_several(data) || ddp__mix_used(&t->loader.mix) ||
         (t->loader.class_weight && t->loader.smoothing > 0));
    t->loader.status = &t->ddp->status;
    t->step_samples = t->cfg.batch;
    return 0;
}

/* A setting that changes nothing is a mistake. */
static int check_sums(const struct ddp_trainer *t)
{
    if (!t->cfg.sync_bn || t->engine->graph->sums)
        return 0;
    return ddp__fail(DDP_EINVAL, "sync_bn is set, but the chain has no batch "
                                 "norm that is trained: leave it out");
}

static int begin_stream(struct ddp_trainer *t)
{
    const struct ddp__reader r = {t->cfg.batch, t->cfg.run_ahead, t->cfg.seed,
                                  t->cfg.order == DDP_SHUFFLE};
    int rc;

    if (!ddp__is_stream(t->loader.data))
        return 0;
    rc = ddp__stream_begin(t->loader.data, &r);
    t->reads_stream = rc == 0;
    return rc;
}

/* Memory is checked before weights are initialised and the folder of
 * checkpoints is used: a run that does not fit leaves both as they were. */
static int make_trainer(struct ddp_trainer *t)
{
    struct ddp__engine_spec spec;
    int rc;

    t->total = t->cfg.steps ? t->cfg.steps
               : ddp__is_stream(t->loader.data)
                   ? DDP__UNKNOWN
                   : t->cfg.epochs * t->loader.steps;
    t->loader.end = t->total;
    if ((rc = begin_stream(t)) < 0)
        return rc;
    if (!(t->sizes = calloc((size_t)t->loader.subs, sizeof(*t->sizes))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a trainer");
    spec = ddp__engine_spec(&t->cfg, &t->loader, DDP__TRAIN);
    spec.rule = t->rule;
    spec.graph.frozen = t->frozen;
    spec.values_follow = !t->cfg.keep_weights;
    if ((rc = ddp__engine_new(&t->engine, t->ddp, t->chain, &spec)) < 0 ||
        (rc = check_sums(t)) < 0 || (rc = ddp__memory_check(t)) < 0)
        return rc;
    t->skips.loss_scale = t->engine->scaler_memory[DDP__SCALER_SCALE];
    if (!t->cfg.keep_weights &&
        (rc = ddp__params_init_rest(t->chain->params, t->cfg.seed)) < 0)
        return rc;
    return ddp__checkpoints_new(t);
}

ddp_trainer_t *ddp_trainer_new(ddp_t *ddp, ddp_chain_t *chain,
                               ddp_dataset_t *data,
                               const struct ddp_train_config *cfg)
{
    struct ddp_trainer *t;

    if (!ddp || !chain || !data) {
        ddp__fail_null(!ddp ? "ddp" : !chain ? "chain" : "data");
        return NULL;
    }
    if (!(t = calloc(1, sizeof(*t)))) {
        ddp__fail(DDP_ENOMEM, "out of memory for a trainer");
        return NULL;
    }
    t->ddp = ddp;
    t->chain = chain;
    ddp_train_config_init(&t->cfg);
    t->skips.last = -1;
    if (ddp__own_data(t, configure(t, data, cfg)) < 0 ||
        ddp__agree_on_trainer(t, make_trainer(t)) < 0) {
        ddp_trainer_free(t);
        return NULL;
    }
    return t;
}

int64_t ddp_trainer_epoch_steps(const ddp_trainer_t *t)
{
    return t ? t->loader.steps : ddp__fail_null("trainer");
}

const struct ddp_train_config *ddp_trainer_config(const ddp_trainer_t *t)
{
    if (!t)
        ddp__fail_null("trainer");
    return t ? &t->cfg : NULL;
}

int ddp__trainer_check(const struct ddp_trainer *t)
{
    return t ? ddp__engine_check(t->engine) : ddp__fail_null("trainer");
}

void ddp_trainer_free(ddp_trainer_t *t)
{
    if (!t)
        return;
    ddp__checkpoints_free(t);
    json_decref(t->run.changes);
    ddp__engine_free(t->engine);
    ddp__trace_free(t->trace);
    ddp__eval_free(t->eval);
    if (t->reads_stream)
        ddp__stream_end(t->loader.data);
    free(t->sizes);
    free(t->sinks);
    free(t->rule);
    free(t->frozen);
    free(t);
}

/* ---- steps -------------------------------------------------------------- */

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

static struct ddp__step step_of(const struct ddp_trainer *t, int64_t step,
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

struct ddp_metrics ddp__metrics(const double *stats)
{
    double n = stats[DDP__STAT_COUNT], d = stats[DDP__STAT_DIVISOR];

    return (struct ddp_metrics){
        .samples = (int64_t)n,
        .loss = d != 0 ? stats[DDP__STAT_LOSS] / d : 0,
        .top1 = n > 0 ? stats[DDP__STAT_TOP1] / n : 0,
        .top5 = n > 0 ? stats[DDP__STAT_TOP5] / n : 0,
        .top10 = n > 0 ? stats[DDP__STAT_TOP10] / n : 0,
    };
}

static void add_epoch(struct ddp__run *r, const double *s)
{
    r->epoch.samples += (int64_t)s[DDP__STAT_COUNT];
    r->epoch.loss += s[DDP__STAT_LOSS];
    r->epoch.top1 += s[DDP__STAT_TOP1];
    r->epoch.top5 += s[DDP__STAT_TOP5];
    r->epoch.top10 += s[DDP__STAT_TOP10];
    r->epoch_divisor += s[DDP__STAT_DIVISOR];
}

struct ddp_metrics ddp__trainer_epoch_mean(const struct ddp_trainer *t)
{
    const struct ddp__run *r = &t->run;
    double s[DDP__STATS] = {
        [DDP__STAT_LOSS] = r->epoch.loss,
        [DDP__STAT_DIVISOR] = r->epoch_divisor,
        [DDP__STAT_COUNT] = (double)r->epoch.samples,
        [DDP__STAT_TOP1] = r->epoch.top1,
        [DDP__STAT_TOP5] = r->epoch.top5,
        [DDP__STAT_TOP10] = r->epoch.top10,
    };

    return ddp__metrics(s);
}

static int note_skips(struct ddp_trainer *t, const struct ddp__result *r)
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
        add_epoch(&t->run, r->stats);
        t->applied = t->reported;
    }
    t->divisor = r->stats[DDP__STAT_DIVISOR] * r->scale;
    if (t->gradients && !isfinite(r->stats[DDP__STAT_LOSS]))
        return ddp__fail(DDP_EDIVERGED, "the loss of step %lld is not finite",
                         (long long)t->reported);
    return note_skips(t, r);
}

/* After a failure: the steps before the one that failed are done, and it is the
 * next one.  Returns rc, with its message. */
static int settle_steps(struct ddp_trainer *t, int rc)
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
        return settle_steps(t, rc);
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
    s = step_of(t, t->submitted, update);
    rc = ddp__engine_step(t->engine, &s);
    t->gradients = !update;
    if (rc < 0)
        return settle_steps(t, rc);
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

/* The next step, for which a program has asked. */
static int submit_next(struct ddp_trainer *t, bool update)
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
    if ((rc = submit_next(t, true)) < 0 || !m)
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

static int run_gradients(struct ddp_trainer *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    if ((rc = ddp__trainer_drain(t, &r)) == 0 &&
        (rc = submit_next(t, false)) == 0)
        rc = ddp__trainer_drain(t, &r);
    if (rc < 0) {
        t->gradients = false;
        return rc;
    }
    if (m)
        *m = ddp__metrics(r.stats);
    return 0;
}

int ddp_trainer_gradients(ddp_trainer_t *t, struct ddp_metrics *m)
{
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    ddp__status_enter(&t->ddp->status, DDP_PHASE_TRAINING);
    rc = run_gradients(t, m);
    ddp__status_enter(&t->ddp->status, DDP_PHASE_PROGRAM);
    return rc;
}

static int need_gradients(const struct ddp_trainer *t)
{
    int rc = ddp__trainer_check(t);

    return rc < 0 || t->gradients
               ? rc
               : ddp__fail(DDP_EINVAL, "there are no gradients: call "
                                       "ddp_trainer_gradients() first");
}

/* Of a step that waits for its update, or was made and has kept them. */
static int need_sums(const struct ddp_trainer *t)
{
    int rc = ddp__trainer_check(t);

    if (rc == 0 && t->cfg.keep_gradients && t->reported > t->begun &&
        t->reported == t->submitted)
        return 0;
    return need_gradients(t);
}

/* With gradients, of such a step. */
static int need_divisor(const struct ddp_trainer *t, int rc)
{
    if (rc < 0 || t->divisor != 0)
        return rc;
    return ddp__fail(DDP_EINVAL, "the step had no samples, so it has no "
                                 "gradients");
}

int ddp_trainer_get_gradient(ddp_trainer_t *t, const char *name, float *out,
                             size_t len)
{
    int rc = need_divisor(t, need_sums(t));

    return rc < 0 ? rc
                  : ddp__engine_gradient(t->engine, name, out, len, t->divisor);
}

int ddp_trainer_set_gradient(ddp_trainer_t *t, const char *name,
                             const float *in, size_t len)
{
    int rc = need_divisor(t, need_gradients(t));

    return rc < 0
               ? rc
               : ddp__engine_set_gradient(t->engine, name, in, len, t->divisor);
}

int ddp_trainer_update(ddp_trainer_t *t)
{
    struct ddp__result r;
    struct ddp__step s;
    int rc = need_gradients(t);

    if (rc < 0 || (rc = ddp__trainer_need_optimizer(t)) < 0)
        return rc;
    s = step_of(t, t->submitted - 1, true);
    t->gradients = false;
    if ((rc = ddp__engine_update(t->engine, &s)) < 0 ||
        (rc = ddp__engine_wait(t->engine, s.number, &r)) < 0)
        return settle_steps(t, rc);
    return note_skips(t, &r);
}

int ddp__trainer_apply(struct ddp_trainer *t, const float *g, double divisor)
{
    struct ddp__step s = step_of(t, t->submitted, true);
    struct ddp__result r;
    int rc;

    t->gradients = false;
    if ((rc = ddp__engine_apply(t->engine, &s, g, divisor)) < 0)
        return settle_steps(t, rc);
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
    return settle_steps(t, rc);
}

int64_t ddp_trainer_steps(const ddp_trainer_t *t)
{
    return t ? t->submitted : ddp__fail_null("trainer");
}

int ddp_trainer_skips(const ddp_trainer_t *t, struct ddp_skips *s)
{
    if (!t)
        return ddp__fail_null("trainer");
    *s = t->skips;
    return 0;
}

int ddp_trainer_stats(ddp_trainer_t *t, struct ddp_stats *s)
{
    int rc = ddp__trainer_check(t);
    const struct ddp__engine *e;

    if (rc < 0)
        return rc;
    e = t->engine;
    ddp__task_group_wait(&t->engine->group);
    *s = (struct ddp_stats){
        .steps = e->finished - e->begun,
        .wall_s = e->last_end - e->first_submit,
        .sched_s = e->submit_s,
        .submit_s = e->submit_s,
        .peak_bytes = ddp__pool_peak(),
        .flops = e->flops,
    };
    for (int w = 0; w < DDP__MAX_WORKERS; w++) {
        const struct ddp__worker_time *b = &e->group.time_of[w];
        double exec_s = ddp__task_group_busy(&e->group, w);

        s->tasks += b->tasks;
        s->exec_s += exec_s;
        s->gpu_s += ddp__worker_accelerates(t->ddp, w) ? exec_s : 0;
        s->data_s += ddp__task_group_part(&e->group, w, DDP_PART_INPUT);
        s->sched_s += b->gap_s;
    }
    return 0;
}
