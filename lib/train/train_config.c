/* train_config.c - the configuration of a run: defaults and checks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/stream.h"
#include "ops_loss.h"
#include "runtime/devices.h"

enum { LANES = 8, MAX_REPEATS = 1000 };

static const struct ddp_train_config defaults = {
    .struct_size = sizeof(defaults),
    .sub_batch = 32,
    .epochs = 1,
    .run_ahead = 2,
    .max_nan_steps = 10,
    .optimizer = {.lr = -1},
    .checkpoint = {.keep = 3},
    .focal_gamma = 2,
    .focal_alpha = 0.25f,
    .distill_weight = 0.5,
    .distill_temperature = 1,
    .mix_prob = 1,
    .mix_switch_prob = 0.5,
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
        {"checkpoint_failures", c->checkpoint_failures, 0},
        {"sink_count", c->sink_count, 0},
        {"group_count", c->group_count, 0},
        {"patience", c->patience, 0},
        {"every_steps", c->every_steps, c->on_steps ? 1 : 0},
        {"trace_first", c->trace_first, 0},
        {"trace_steps", c->trace_steps, 0},
        {"mix_off_epoch", c->mix_off_epoch, 0},
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

/* 0 or more, and finite: checkpoints hold it as a number of JSON. */
static bool is_amount(double v)
{
    return v >= 0 && isfinite(v);
}

static int check_momentum(const struct ddp_schedule *s)
{
    if (s->max_momentum >= 0 && s->max_momentum < 1 && s->base_momentum >= 0 &&
        s->base_momentum < 1 && (s->max_momentum > 0) == (s->base_momentum > 0))
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "schedule: max_momentum %g, base_momentum %g, expected "
                     "two numbers between 0 and 1, or both 0",
                     s->max_momentum, s->base_momentum);
}

static int check_milestones(const struct ddp_schedule *s)
{
    double before = 0;

    for (int i = 0; i < DDP_MILESTONES && s->milestones[i] != 0; i++) {
        if (!(s->milestones[i] > before && isfinite(s->milestones[i])))
            return ddp__fail(DDP_EINVAL,
                             "schedule: milestone %d is %g, expected more than "
                             "%g",
                             i, s->milestones[i], before);
        before = s->milestones[i];
    }
    return before > 0 ? 0
                      : ddp__fail(DDP_EINVAL, "schedule: there are no "
                                              "milestones: ddp_schedule_init() "
                                              "sets defaults");
}

/* Numbers that must be above 0 for a kind. */
static int check_positive(const struct ddp_schedule *s)
{
    const struct {
        enum ddp_schedule_kind kind;
        const char *name;
        double value;
    } row[] = {
        {DDP_STEPPED, "every", s->every},
        {DDP_STEPPED, "gamma", s->gamma},
        {DDP_MULTISTEP, "gamma", s->gamma},
        {DDP_EXPONENTIAL, "gamma", s->gamma},
        {DDP_POLYNOMIAL, "power", s->power},
        {DDP_RESTARTS, "every", s->every},
        {DDP_RESTARTS, "stretch", s->stretch},
        {DDP_PLATEAU, "gamma", s->gamma},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (s->kind == row[i].kind &&
            !(row[i].value > 0 && isfinite(row[i].value)))
            return ddp__fail(DDP_EINVAL,
                             "schedule: %s is %g, expected above 0: "
                             "ddp_schedule_init() sets defaults",
                             row[i].name, row[i].value);
    return 0;
}

static int check_plateau(const struct ddp_schedule *s)
{
    if (s->gamma < 1 && s->patience >= 0 && s->cooldown >= 0 &&
        is_amount(s->threshold) && s->final_factor <= 1)
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "schedule: gamma %g, patience %d, cooldown %d, threshold "
                     "%g, final_factor %g, expected below 1, 0 or more, 0 or "
                     "more, 0 or more, and up to 1",
                     s->gamma, s->patience, s->cooldown, s->threshold,
                     s->final_factor);
}

static int check_noise(const struct ddp_schedule *s)
{
    if (!(s->noise_from < s->noise_to) ||
        (s->noise_limit > 0 && s->noise_limit <= 1 && s->noise_deviation > 0))
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "schedule: noise_limit %g and noise_deviation %g, "
                     "expected above 0, and a limit up to 1",
                     s->noise_limit, s->noise_deviation);
}

static int check_schedule(const struct ddp_schedule *s)
{
    int rc;

    if ((int)s->kind < DDP_CONSTANT || s->kind > DDP_PLATEAU)
        return ddp__fail(DDP_EINVAL, "unknown kind of schedule %d",
                         (int)s->kind);
    if (!is_amount(s->warmup) || !is_amount(s->warmup_factor) ||
        !is_amount(s->final_factor))
        return ddp__fail(DDP_EINVAL,
                         "schedule: warmup %g, warmup_factor %g, final_factor "
                         "%g, expected 0 or more",
                         s->warmup, s->warmup_factor, s->final_factor);
    if ((rc = check_momentum(s)) < 0 || (rc = check_positive(s)) < 0 ||
        (rc = check_noise(s)) < 0)
        return rc;
    if (s->kind == DDP_RESTARTS && s->stretch < 1)
        return ddp__fail(DDP_EINVAL,
                         "schedule: stretch is %g, expected 1 or more",
                         s->stretch);
    return s->kind == DDP_MULTISTEP ? check_milestones(s)
           : s->kind == DDP_PLATEAU ? check_plateau(s)
                                    : 0;
}

/* What every kind of optimizer has. */
static int check_amounts(const struct ddp_optimizer *o)
{
    bool set = o->lr != defaults.optimizer.lr;

    if (set && !is_amount((double)o->lr))
        return ddp__fail(DDP_EINVAL, "learning rate %g, expected 0 or more",
                         (double)o->lr);
    if (is_amount((double)o->clip_norm) && is_amount((double)o->clip_value) &&
        is_amount((double)o->clip_unit) && is_amount((double)o->weight_decay) &&
        o->lookahead >= 0)
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "optimizer: clip_norm %g, clip_value %g, clip_unit "
                     "%g, weight_decay %g, lookahead %d, expected 0 or "
                     "more",
                     (double)o->clip_norm, (double)o->clip_value,
                     (double)o->clip_unit, (double)o->weight_decay,
                     o->lookahead);
}

static int check_own_update(const struct ddp_optimizer *o)
{
    if (o->update && o->update_states >= 0 &&
        o->update_states <= DDP_UPDATE_STATES)
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "optimizer: %s, update_states %d: "
                     "DDP_CUSTOM_OPTIMIZER needs update, and 0 to %d "
                     "states",
                     o->update ? "update is set" : "update is NULL",
                     o->update_states, DDP_UPDATE_STATES);
}

/* What only some kinds use. */
static int check_moments(const struct ddp_optimizer *o, unsigned uses)
{
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

static int check_optimizer(const struct ddp_optimizer *o)
{
    const struct ddp_optimizer_info *info = ddp_optimizer_info(o->kind);
    int rc;

    if (!info)
        return ddp__fail(DDP_EINVAL, "unknown kind of optimizer %d",
                         (int)o->kind);
    if ((rc = check_amounts(o)) < 0)
        return rc;
    if (o->clip_unit > 0 &&
        ddp__optimizer_uses(o, DDP__LAYERWISE | DDP__PROJECTS))
        return ddp__fail(DDP_EINVAL,
                         "optimizer: clip_unit %g, and %s scales the step of "
                         "each parameter by its norm already: use clip_norm",
                         (double)o->clip_unit, info->name);
    if (o->kind == DDP_CUSTOM_OPTIMIZER && (rc = check_own_update(o)) < 0)
        return rc;
    return check_moments(o, info->uses);
}

static int check_loss(const struct ddp_train_config *c)
{
    if (!ddp__loss_info(c->loss))
        return ddp__fail(DDP_EINVAL, "unknown kind of loss %d", (int)c->loss);
    if (c->loss == DDP_CUSTOM_LOSS && !c->loss_fn)
        return ddp__fail(DDP_EINVAL, "DDP_CUSTOM_LOSS needs loss_fn");
    if (!(c->label_smoothing >= 0 && c->label_smoothing < 1))
        return ddp__fail(DDP_EINVAL, "label smoothing %g, expected 0 <= s < 1",
                         (double)c->label_smoothing);
    if (!(c->target_threshold >= 0 && c->target_threshold < 1))
        return ddp__fail(DDP_EINVAL,
                         "target_threshold %g, expected 0 <= threshold < 1",
                         (double)c->target_threshold);
    if (!(c->focal_gamma >= 0 && c->focal_gamma <= 100 && c->focal_alpha <= 1 &&
          isfinite(c->focal_alpha)))
        return ddp__fail(
            DDP_EINVAL,
            "focal_gamma %g, focal_alpha %g, expected a gamma from "
            "0 to 100 and an alpha of at most 1",
            (double)c->focal_gamma, (double)c->focal_alpha);
    return 0;
}

/* With ! also NaN is refused. */
static int check_teacher(const struct ddp_train_config *c)
{
    if (!c->teacher)
        return 0;
    if (ddp__loss_info(c->loss)->target != DDP__TARGET_CLASS)
        return ddp__fail(DDP_EINVAL,
                         "a teacher is for losses of classes, not for %s",
                         ddp__loss_info(c->loss)->name);
    if (!(c->distill_weight >= 0 && c->distill_weight <= 1 &&
          c->distill_temperature > 0 && isfinite(c->distill_temperature)))
        return ddp__fail(DDP_EINVAL,
                         "distill_weight %g, distill_temperature %g, expected "
                         "a weight from 0 to 1 and a temperature above 0",
                         c->distill_weight, c->distill_temperature);
    return 0;
}

static int check_mix(const struct ddp_train_config *c)
{
    if (!(c->mixup >= 0 && c->mixup <= 1000 && c->cutmix >= 0 &&
          c->cutmix <= 1000))
        return ddp__fail(DDP_EINVAL,
                         "mixup %g, cutmix %g, expected alphas of Beta from 0 "
                         "to 1000",
                         c->mixup, c->cutmix);
    if (!(c->mix_prob >= 0 && c->mix_prob <= 1 && c->mix_switch_prob >= 0 &&
          c->mix_switch_prob <= 1))
        return ddp__fail(DDP_EINVAL,
                         "mix_prob %g, mix_switch_prob %g, expected "
                         "probabilities",
                         c->mix_prob, c->mix_switch_prob);
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
    if (c->repeats < 0 || c->repeats > MAX_REPEATS ||
        (c->repeats > 1 && c->order != DDP_SHUFFLE))
        return ddp__fail(DDP_EINVAL,
                         "%d repeats of samples, expected 0 to %d, and "
                         "DDP_SHUFFLE: an epoch does not see the others",
                         c->repeats, MAX_REPEATS);
    if ((rc = check_loss(c)) < 0 || (rc = check_teacher(c)) < 0 ||
        (rc = check_mix(c)) < 0)
        return rc;
    if ((rc = ddp__devices_check(ddp, c->dtype)) < 0)
        return rc;
    if (c->wire != DDP_F32 && c->wire != DDP_BF16)
        return ddp__fail(DDP_EINVAL,
                         "wire is type %d, expected DDP_F32 or DDP_BF16",
                         (int)c->wire);
    if (!(c->ema_decay >= 0 && c->ema_decay < 1))
        return ddp__fail(DDP_EINVAL, "ema_decay %g, expected 0 <= decay < 1",
                         c->ema_decay);
    if (c->tta != DDP_TTA_NONE && c->tta != DDP_TTA_FLIP)
        return ddp__fail(DDP_EINVAL,
                         "tta is %d, expected DDP_TTA_NONE or DDP_TTA_FLIP",
                         (int)c->tta);
    return 0;
}

/* Weights of a setting, one for each output of a kind of loss. */
struct weights {
    const char *name;
    const float *weight;
    int count;
    enum ddp_loss_kind loss;
};

static int check_weights(const struct weights *w, enum ddp_loss_kind loss,
                         int outputs)
{
    if (!w->count && !w->weight)
        return 0;
    if (!w->weight || w->count != outputs)
        return ddp__fail(DDP_EINVAL,
                         "%s: %d weights, expected %d, one for each class",
                         w->name, w->weight ? w->count : 0, outputs);
    if (loss != w->loss)
        return ddp__fail(DDP_EINVAL, "%s: only for the loss %s, not for %s",
                         w->name, ddp__loss_info(w->loss)->name,
                         ddp__loss_info(loss)->name);
    for (int i = 0; i < outputs; i++)
        if (!(w->weight[i] >= 0 && isfinite(w->weight[i])))
            return ddp__fail(DDP_EINVAL,
                             "%s: %g for class %d, expected 0 or more", w->name,
                             (double)w->weight[i], i);
    return 0;
}

static int check_all_weights(const struct ddp_train_config *c,
                             const ddp_dataset_t *d)
{
    const struct weights all[] = {
        {"class_weights", c->class_weights, c->class_weight_count,
         DDP_LOGIT_CROSS_ENTROPY},
        {"pos_weight", c->pos_weight, c->pos_weight_count,
         DDP_BINARY_CROSS_ENTROPY}};
    int rc = 0;

    for (int i = 0; rc == 0 && i < 2; i++)
        rc = check_weights(&all[i], c->loss,
                           d->classes ? d->classes : d->target_len);
    return rc;
}

/* What a stream cannot do, since nobody knows when it ends. */
static int check_stream(const struct ddp_train_config *c, const ddp_t *ddp,
                        const ddp_dataset_t *d)
{
    enum ddp_schedule_kind kind = c->schedule.kind;

    if (!ddp__is_stream(d))
        return 0;
    if (ddp_rank_count(ddp) > 1)
        return ddp__fail(DDP_EINVAL,
                         "%d ranks cannot read one stream: train with one "
                         "process, or give each rank data of a known length",
                         ddp_rank_count(ddp));
    if (c->drop_last || c->repeats > 1 || c->checkpoint.keep_epochs)
        return ddp__fail(DDP_EINVAL,
                         "%s needs data of a known length, which a stream has "
                         "not",
                         c->drop_last     ? "drop_last"
                         : c->repeats > 1 ? "repeats"
                                          : "checkpoint.keep_epochs");
    if (!c->steps && ((kind != DDP_CONSTANT && kind != DDP_PLATEAU) ||
                      c->schedule.warmup > 0))
        return ddp__fail(DDP_EINVAL,
                         "the schedule needs the length of the run, which a "
                         "stream does not tell: set steps");
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
    if (!c->own_data && !ddp__is_stream(d) && c->batch > d->count)
        c->batch = (int)d->count;
    if (c->sub_batch > c->batch)
        c->sub_batch = c->batch;
    subs = (int)quotient_up(c->batch, c->sub_batch);
    if (!c->lanes)
        c->lanes = subs < LANES || c->sync_bn ? subs : LANES;
    if (c->steps && !ddp__is_stream(d))
        c->epochs = quotient_up(c->steps,
                                c->drop_last ? d->count / c->batch
                                             : quotient_up(d->count, c->batch));
}

/* Of a resolved configuration. */
static int check_sync_bn(const struct ddp_train_config *c)
{
    int subs = (int)quotient_up(c->batch, c->sub_batch);

    return !c->sync_bn || c->lanes >= subs
               ? 0
               : ddp__fail(DDP_EINVAL,
                           "%d lanes for the %d sub-batches of a step, but "
                           "with sync_bn each is a lane: set lanes to 0 or %d",
                           c->lanes, subs, subs);
}

int ddp_train_config_resolve(struct ddp_train_config *c, const ddp_t *ddp,
                             const ddp_dataset_t *data)
{
    struct ddp_train_config own = defaults;
    int rc;

    if (!ddp || !data || !c)
        return ddp__fail_null(!ddp ? "ddp" : !data ? "data" : "configuration");
    if ((rc = ddp__options_copy(&own, sizeof(own), c, "ddp_train_config")) <
            0 ||
        (rc = check_config(ddp, &own)) < 0 ||
        (rc = check_all_weights(&own, data)) < 0 ||
        (rc = check_stream(&own, ddp, data)) < 0)
        return rc;
    own.own_data &= ddp_rank_count(ddp) > 1;
    resolve_config(&own, data);
    if ((rc = check_sync_bn(&own)) < 0)
        return rc;
    own.struct_size = c->struct_size;
    memcpy(c, &own, own.struct_size);
    return 0;
}
