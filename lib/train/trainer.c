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
#include "runtime/devices.h"
#include "train/evaluate.h"
#include "train/memory.h"
#include "train/checkpoints.h"
#include "train/trainer.h"

enum {
    LANES = 8,
    RING_BYTES = 256 << 20, /* most input that is read ahead */
};

/* ---- making ------------------------------------------------------------- */

static const struct ddp_train_config defaults = {
    .struct_size = sizeof(defaults),
    .sub_batch = 32,
    .epochs = 1,
    .run_ahead = 2,
    .max_nan_steps = 10,
    .optimizer = {.lr = -1},
    .checkpoint = {.keep = 3},
};

void ddp_train_config_init_sized(struct ddp_train_config *c, size_t size)
{
    ddp__options_init(c, size, &defaults, sizeof(defaults));
}

/* Whether a number is too small, by name. */
static int check_numbers(const struct ddp_train_config *c)
{
    const struct {
        const char *name;
        int64_t value, least;
    } row[] = {
        {"sub_batch", c->sub_batch, 1},
        {"batch", c->batch, 0},
        {"lanes", c->lanes, 0},
        {"epochs", c->epochs, 1},
        {"steps", c->steps, 0},
        {"run_ahead", c->run_ahead, 1},
        {"max_nan_steps", c->max_nan_steps, 0},
        {"checkpoint.steps", c->checkpoint.steps, 0},
        {"checkpoint.epochs", c->checkpoint.epochs, 0},
        {"checkpoint.keep", c->checkpoint.keep, 1},
        {"checkpoint.keep_epochs", c->checkpoint.keep_epochs, 0},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (row[i].value < row[i].least)
            return ddp__fail(DDP_EINVAL, "%s is %lld, expected %lld or more",
                             row[i].name, (long long)row[i].value,
                             (long long)row[i].least);
    if (!(c->checkpoint.seconds >= 0))
        return ddp__fail(DDP_EINVAL,
                         "checkpoint.seconds is %g, expected 0 or more",
                         c->checkpoint.seconds);
    return 0;
}

static int check_schedule(const struct ddp_schedule *s)
{
    if ((int)s->kind < DDP_CONSTANT || s->kind > DDP_CUSTOM_SCHEDULE)
        return ddp__fail(DDP_EINVAL, "unknown kind of schedule %d",
                         (int)s->kind);
    if (!(s->warmup >= 0 && s->warmup_factor >= 0 && s->final_factor >= 0))
        return ddp__fail(DDP_EINVAL,
                         "schedule: warmup %g, warmup_factor %g, final_factor "
                         "%g, expected 0 or more",
                         s->warmup, s->warmup_factor, s->final_factor);
    if (s->kind == DDP_STEPPED && !(s->every > 0 && s->gamma > 0))
        return ddp__fail(DDP_EINVAL,
                         "schedule: every %g, gamma %g, expected above 0: "
                         "ddp_schedule_init() sets defaults",
                         s->every, s->gamma);
    return 0;
}

/* Long, since each field that the kind uses has a range and a sentence. */
static int check_optimizer(const struct ddp_optimizer *o)
{
    const struct ddp_optimizer_info *info = ddp_optimizer_info(o->kind);
    unsigned uses = info ? info->uses : 0;
    bool set = o->lr != defaults.optimizer.lr;

    if (!info)
        return ddp__fail(DDP_EINVAL, "unknown kind of optimizer %d",
                         (int)o->kind);
    if (set && !(o->lr >= 0 && isfinite(o->lr)))
        return ddp__fail(DDP_EINVAL, "learning rate %g, expected 0 or more",
                         (double)o->lr);
    if (!(o->clip_norm >= 0) || !(o->weight_decay >= 0))
        return ddp__fail(DDP_EINVAL,
                         "optimizer: clip_norm %g, weight_decay %g, expected 0 "
                         "or more",
                         (double)o->clip_norm, (double)o->weight_decay);
    if ((uses & DDP_USES_MOMENTUM) && !(o->momentum >= 0 && o->momentum <= 1))
        return ddp__fail(DDP_EINVAL, "optimizer: momentum %g, expected 0 to 1",
                         (double)o->momentum);
    if (((uses & DDP_USES_BETA1) && !(o->beta1 >= 0 && o->beta1 < 1)) ||
        ((uses & DDP_USES_BETA2) && !(o->beta2 >= 0 && o->beta2 < 1)))
        return ddp__fail(DDP_EINVAL,
                         "optimizer: beta1 %g, beta2 %g, expected 0 <= beta "
                         "< 1",
                         (double)o->beta1, (double)o->beta2);
    if ((uses & DDP_USES_EPS) && !(o->eps > 0 && isfinite(o->eps)))
        return ddp__fail(DDP_EINVAL,
                         "optimizer: eps %g, expected above 0: ddp_adam() and "
                         "others set defaults",
                         (double)o->eps);
    return 0;
}

/* What a table of integers, as in check_numbers(), cannot express:
 * enumerators, ranges of real numbers, and what the devices can do.
 * Conditions with ! also refuse NaN. */
static int check_config(const ddp_t *ddp, const struct ddp_train_config *c)
{
    int rc = check_numbers(c);

    if (rc < 0 || (rc = check_schedule(&c->schedule)) < 0)
        return rc;
    if ((rc = check_optimizer(&c->optimizer)) < 0)
        return rc;
    if (c->order != DDP_SHUFFLE && c->order != DDP_IN_ORDER)
        return ddp__fail(DDP_EINVAL,
                         "order is %d, expected DDP_SHUFFLE or DDP_IN_ORDER",
                         (int)c->order);
    if (!ddp__loss_info(c->loss))
        return ddp__fail(DDP_EINVAL, "unknown kind of loss %d", (int)c->loss);
    if (c->dtype != DDP_F32 && c->dtype != DDP_BF16 && c->dtype != DDP_F16)
        return ddp__fail(
            DDP_EINVAL,
            "activations of type %d, expected DDP_F32, DDP_BF16 or DDP_F16",
            (int)c->dtype);
    if (c->dtype == DDP_BF16 && !ddp__devices_compute(ddp, DDP_BF16))
        return ddp__fail(DDP_ENODEV,
                         "this processor has no bf16 arithmetic "
                         "that the backend uses: use f32%s",
                         ddp__devices_compute(ddp, DDP_F16) ? " or f16" : "");
    if (c->dtype == DDP_F16 && !ddp__devices_compute(ddp, DDP_F16))
        return ddp__fail(DDP_ENODEV,
                         "no device here computes in f16: use f32 or bf16 (or, "
                         "to try it, the backend ref, which is slow)");
    if (!(c->ema_decay >= 0 && c->ema_decay < 1))
        return ddp__fail(DDP_EINVAL, "ema_decay %g, expected 0 <= decay < 1",
                         c->ema_decay);
    if (c->tta != DDP_TTA_NONE && c->tta != DDP_TTA_FLIP)
        return ddp__fail(DDP_EINVAL,
                         "tta is %d, expected DDP_TTA_NONE or DDP_TTA_FLIP",
                         (int)c->tta);
    if (c->loss == DDP_CUSTOM_LOSS && !c->loss_fn)
        return ddp__fail(DDP_EINVAL, "DDP_CUSTOM_LOSS needs loss_fn");
    if (!(c->label_smoothing >= 0 && c->label_smoothing < 1))
        return ddp__fail(DDP_EINVAL, "label smoothing %g, expected 0 <= s < 1",
                         (double)c->label_smoothing);
    return 0;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void resolve_config(struct ddp_train_config *c, const ddp_dataset_t *d)
{
    int subs;

    if (!c->batch)
        c->batch = (c->lanes ? c->lanes : LANES) * c->sub_batch;
    if (c->batch > d->count)
        c->batch = (int)d->count;
    if (c->sub_batch > c->batch)
        c->sub_batch = c->batch;
    subs = (int)quotient_up(c->batch, c->sub_batch);
    if (!c->lanes)
        c->lanes = subs < LANES ? subs : LANES;
    if (c->steps)
        c->epochs = quotient_up(c->steps, quotient_up(d->count, c->batch));
}

int ddp_train_config_resolve(struct ddp_train_config *c, const ddp_t *ddp,
                             const ddp_dataset_t *data)
{
    struct ddp_train_config own = defaults;
    int rc;

    if (!ddp || !data)
        return DDP_EINVAL; /* their constructors set the message */
    if ((rc = ddp__options_copy(&own, sizeof(own), c, "ddp_train_config")) <
            0 ||
        (rc = check_config(ddp, &own)) < 0)
        return rc;
    resolve_config(&own, data);
    own.struct_size = c->struct_size;
    memcpy(c, &own, own.struct_size);
    return 0;
}

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
                  .classes = d->classes,
                  .target_len = d->target_len,
                  .loss = {c->loss, c->label_smoothing, c->loss_fn,
                           c->loss_arg},
                  .fill = ddp__loader_fill,
                  .arg = l},
        .lanes = c->lanes,
        .run_ahead = c->run_ahead,
        .ring = ring_length(c, d, l->subs),
        .optimizer = mode == DDP__TRAIN ? &c->optimizer : NULL,
        .ema_decay = mode == DDP__TRAIN ? c->ema_decay : 0,
    };

    memcpy(s.graph.mean, d->mean, sizeof(s.graph.mean));
    memcpy(s.graph.std, d->std, sizeof(s.graph.std));
    return s;
}

/* Memory is checked before weights are initialised and the folder of
 * checkpoints is used: a run that does not fit leaves both as they were. */
static int make_trainer(struct ddp_trainer *t, ddp_dataset_t *data,
                        const struct ddp_train_config *cfg)
{
    struct ddp__engine_spec spec;
    int rc;

    if ((rc = ddp__options_copy(&t->cfg, sizeof(t->cfg), cfg,
                                "ddp_train_config")) < 0 ||
        (rc = ddp_train_config_resolve(&t->cfg, t->ddp, data)) < 0)
        return rc;
    if (data->classes == 1)
        return ddp__fail(DDP_EINVAL, "the data have one class, expected two or "
                                     "more: there is nothing to learn");
    t->loader = ddp__loader(data, t->cfg.batch, t->cfg.sub_batch);
    t->loader.seed = t->cfg.seed;
    t->loader.shuffle = t->cfg.order == DDP_SHUFFLE;
    t->loader.replace = true;
    t->total = t->cfg.steps ? t->cfg.steps : t->cfg.epochs * t->loader.steps;
    if (!(t->sizes = calloc((size_t)t->loader.subs, sizeof(*t->sizes))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a trainer");
    spec = ddp__engine_spec(&t->cfg, &t->loader, DDP__TRAIN);
    if ((rc = ddp__engine_new(&t->engine, t->ddp, t->chain, &spec)) < 0 ||
        (rc = ddp__memory_check(t)) < 0)
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

    if (!ddp || !chain || !data)
        return NULL; /* their constructors set the message */
    if (!(t = calloc(1, sizeof(*t)))) {
        ddp__fail(DDP_ENOMEM, "out of memory for a trainer");
        return NULL;
    }
    t->ddp = ddp;
    t->chain = chain;
    t->cfg = defaults;
    t->skips.last = -1;
    if (make_trainer(t, data, cfg) < 0) {
        ddp_trainer_free(t);
        return NULL;
    }
    return t;
}

int64_t ddp_trainer_epoch_steps(const ddp_trainer_t *t)
{
    return t ? t->loader.steps : 0;
}

const struct ddp_train_config *ddp_trainer_config(const ddp_trainer_t *t)
{
    return t ? &t->cfg : NULL;
}

void ddp_trainer_free(ddp_trainer_t *t)
{
    if (!t)
        return;
    ddp__checkpoints_free(t);
    ddp__engine_free(t->engine);
    ddp__eval_free(t->eval);
    free(t->sizes);
    free(t);
}

/* ---- steps -------------------------------------------------------------- */

static double epoch_at(const struct ddp_trainer *t, int64_t step)
{
    return (double)step / (double)t->loader.steps;
}

double ddp__trainer_lr(const struct ddp_trainer *t, int64_t step)
{
    double epochs = epoch_at(t, t->total);

    return t->cfg.optimizer.lr * ddp_schedule_factor(&t->cfg.schedule, step,
                                                     epoch_at(t, step), epochs);
}

static struct ddp__step step_of(const struct ddp_trainer *t, int64_t step,
                                bool update)
{
    return (struct ddp__step){
        .number = step,
        .subs = ddp__loader_sizes(&t->loader, step, t->sizes),
        .n = t->sizes,
        .seed = ddp__key(t->cfg.seed, 1, (uint64_t)(step / t->loader.steps)),
        .lr = (float)ddp__trainer_lr(t, step),
        .update = update,
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

int ddp__trainer_submit(struct ddp_trainer *t, bool update)
{
    struct ddp__step s = step_of(t, t->submitted, update);
    int rc = ddp__engine_step(t->engine, &s);

    if (rc == 0)
        t->submitted++;
    t->gradients = !update;
    return rc;
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

/* Wait for the oldest step that was not reported. */
int ddp__trainer_collect(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = ddp__engine_wait(t->engine, t->reported, r);

    if (rc < 0)
        return rc;
    if (t->reported++ % t->loader.steps == 0) {
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

int ddp__trainer_drain(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = 0;

    while (rc == 0 && t->reported < t->submitted)
        rc = ddp__trainer_collect(t, r);
    return rc;
}

int ddp_trainer_step(ddp_trainer_t *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    if ((rc = ddp__trainer_need_optimizer(t)) < 0)
        return rc;
    /* The engine overwrites results older than its run-ahead. */
    while (t->submitted - t->reported >= t->cfg.run_ahead)
        if ((rc = ddp__trainer_collect(t, &r)) < 0)
            return rc;
    if ((rc = ddp__trainer_submit(t, true)) < 0 || !m)
        return rc;
    if ((rc = ddp__trainer_drain(t, &r)) < 0)
        return rc;
    *m = ddp__metrics(r.stats);
    m->skipped = r.skipped;
    return 0;
}

int ddp_trainer_gradients(ddp_trainer_t *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    if ((rc = ddp__trainer_drain(t, &r)) < 0 ||
        (rc = ddp__trainer_submit(t, false)) < 0 ||
        (rc = ddp__trainer_drain(t, &r)) < 0)
        return rc;
    if (m)
        *m = ddp__metrics(r.stats);
    return 0;
}

static int need_gradients(const struct ddp_trainer *t)
{
    if (!t)
        return DDP_EINVAL; /* ddp_trainer_new() set the message */
    return t->gradients
               ? 0
               : ddp__fail(DDP_EINVAL, "there are no gradients: call "
                                       "ddp_trainer_gradients() first");
}

static int need_divisor(const struct ddp_trainer *t)
{
    int rc = need_gradients(t);

    if (rc < 0 || t->divisor != 0)
        return rc;
    return ddp__fail(DDP_EINVAL, "the step had no samples, so it has no "
                                 "gradients");
}

int ddp_trainer_get_gradient(ddp_trainer_t *t, const char *name, float *out,
                             size_t len)
{
    int rc = need_divisor(t);

    return rc < 0 ? rc
                  : ddp__engine_gradient(t->engine, name, out, len, t->divisor);
}

int ddp_trainer_set_gradient(ddp_trainer_t *t, const char *name,
                             const float *in, size_t len)
{
    int rc = need_divisor(t);

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
        return rc;
    return note_skips(t, &r);
}

int ddp_trainer_wait(ddp_trainer_t *t)
{
    struct ddp__result r;
    int rc = ddp__trainer_drain(t, &r);

    return rc < 0 ? rc : ddp__engine_wait_all(t->engine);
}

int64_t ddp_trainer_steps(const ddp_trainer_t *t)
{
    return t->submitted;
}

int ddp_trainer_skips(const ddp_trainer_t *t, struct ddp_skips *s)
{
    if (!t)
        return DDP_EINVAL; /* ddp_trainer_new() set the message */
    *s = t->skips;
    return 0;
}

int ddp_trainer_stats(ddp_trainer_t *t, struct ddp_stats *s)
{
    struct ddp__engine *e = t->engine;

    ddp__task_group_wait(&e->group);
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

        s->tasks += b->tasks;
        s->exec_s += b->exec_s;
        s->gpu_s += ddp__worker_accelerates(t->ddp, w) ? b->exec_s : 0;
        s->data_s += b->data_s;
        s->sched_s += b->gap_s;
    }
    return 0;
}
