/* recipe.c - the hyperparameters of a run, from options and data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "effects.h"
#include "options.h"
#include "recipe.h"
#include "setup_network.h"
#include "split.h"

static const struct ddp_optimizer_info *optimizer(const struct settings *s)
{
    return ddp_optimizer_info((enum ddp_optimizer_kind)s->opt);
}

/* torch.optim.SGD has a momentum. */
static void choose_sgd(const struct opts *o, struct settings *s)
{
    if (s->opt == DDP_SGD && opts_have(o, "momentum") && s->momentum > 0)
        s->opt = DDP_MOMENTUM;
}

/* What is given goes before what a file has instead of it. */
static void prefer_given(const struct opts *o, struct settings *s)
{
    bool base = opts_given(o, "lr-base") || opts_given(o, "lr-base-size");

    if (base && !opts_given(o, "lr"))
        s->lr = 0;
    if (opts_given(o, "epochs") && !opts_given(o, "steps"))
        s->steps = 0;
    if (opts_given(o, "batch-size") && !opts_given(o, "batch-per-device"))
        s->batch_per_device = 0;
    if (opts_given(o, "decay-epochs") && !opts_have(o, "sched"))
        s->sched = SCHED_STEP; /* torchvision's schedule where none is named */
}

int recipe_check(const struct opts *o, struct settings *s)
{
    choose_sgd(o, s);
    prefer_given(o, s);
    return effects_check(o, s);
}

/* Of all ranks, which may have different numbers. */
static int count_devices(struct settings *s, ddp_t *ddp)
{
    int64_t n = ddp_worker_count(ddp);
    int rc = ddp_allreduce(ddp, &n, 1, DDP_I64, DDP_SUM);

    s->devices = (int)n;
    return rc;
}

/* What is not given is that of the run that is resumed, or chosen for so many
 * devices. */
static int choose_split(struct settings *s, const ddp_dataset_t *data)
{
    bool own = !strcmp(s->resume, "auto");
    const char *from = own ? s->output : s->resume; /* NULL: a new folder */
    struct split split = {s->batch, s->sub_batch, s->lanes};
    int rc = OPTS_GO;

    if (from && strcmp(s->resume, "none") != 0)
        rc = split_recorded(&split, from);
    if (rc != OPTS_GO)
        return rc;
    split_choose(&split, s->devices, ddp_dataset_count(data), s->sync_bn);
    s->batch = split.batch;
    s->sub_batch = split.sub_batch;
    s->lanes = split.lanes;
    return OPTS_GO;
}

/* Batch, sub-batch and lanes of this run and these data. */
static int resolve_batch(const struct opts *o, struct settings *s, ddp_t *ddp,
                         const ddp_dataset_t *data)
{
    struct ddp_train_config c;
    int rc = count_devices(s, ddp);

    if (rc < 0)
        return app_fail(rc);
    s->batch *= s->world_size;
    s->world_size = 1;
    if (s->batch_per_device)
        s->batch = s->batch_per_device * s->devices;
    if ((rc = choose_split(s, data)) != OPTS_GO)
        return rc;
    ddp_train_config_init(&c);
    c.sub_batch = (int)s->sub_batch;
    c.lanes = (int)s->lanes;
    c.epochs = s->epochs;
    c.steps = s->steps;
    c.drop_last = s->drop_last;
    c.sync_bn = s->sync_bn;
    c.batch = s->batch < INT_MAX ? (int)s->batch : INT_MAX;
    if ((rc = ddp_train_config_resolve(&c, ddp, data)) < 0)
        return app_fail(rc);
    if (s->batch > c.batch)
        app_say("a batch of %lld images exceeds the data set; using %d",
                (long long)s->batch, c.batch);
    if (s->sub_batch > c.sub_batch && opts_given(o, "sub-batch")) {
        app_say("--sub-batch %lld exceeds the batch size, %d",
                (long long)s->sub_batch, c.batch);
        return EXIT_USAGE;
    }
    s->batch = c.batch;
    s->sub_batch = c.sub_batch;
    s->lanes = c.lanes;
    s->epochs = c.epochs;
    return OPTS_GO;
}

/* Steps that do not grow with the gradient, being divided by its mean size,
 * grow with the root of the batch. */
static void resolve_lr(struct settings *s)
{
    double more = (double)s->batch / s->lr_base_size;
    bool adaptive = optimizer(s)->uses & (DDP_USES_BETA2 | DDP_USES_EPS);

    if (s->lr > 0)
        return;
    if (s->lr_base <= 0)
        s->lr_base = optimizer(s)->lr;
    s->lr = s->lr_base * (adaptive ? sqrt(more) : more);
}

/* torchvision counts a decay for steps of one image, in a run of one epoch, and
 * averages every ema_steps; the same speed at every step. */
static void resolve_averages(const struct opts *o, struct settings *s)
{
    const double timm = 0.9998, torchvision = 0.99998, most = 0.999;
    double share;

    if (s->ema && !opts_have(o, "model-ema-decay"))
        s->ema_decay = s->ema_steps ? torchvision : timm;
    if (s->ema_decay > 0 && s->ema_steps) {
        share = (1 - s->ema_decay) * (double)(s->batch * s->ema_steps) /
                (double)s->epochs;
        s->ema_decay = pow(1 - fmin(share, most), 1.0 / (double)s->ema_steps);
    }
    s->ema_steps = 0;
}

/* The library's defaults for the kind of schedule and length of the run. */
static struct ddp_schedule usual_schedule(const struct settings *s)
{
    static const enum ddp_schedule_kind kind[] = {
        [SCHED_CONSTANT] = DDP_CONSTANT,
        [SCHED_STEP] = DDP_STEPPED,
        [SCHED_COSINE] = DDP_COSINE,
        [SCHED_LINEAR] = DDP_LINEAR,
        [SCHED_ONECYCLE] = DDP_ONE_CYCLE,
        [SCHED_MULTISTEP] = DDP_MULTISTEP,
        [SCHED_EXPONENTIAL] = DDP_EXPONENTIAL,
        [SCHED_POLYNOMIAL] = DDP_POLYNOMIAL,
        [SCHED_RESTARTS] = DDP_RESTARTS,
        [SCHED_PLATEAU] = DDP_PLATEAU};
    struct ddp_schedule usual;

    ddp_schedule_init(&usual, kind[s->sched], (double)s->epochs);
    return usual;
}

int recipe_resolve(const struct opts *o, struct settings *s, ddp_t *ddp,
                   const ddp_dataset_t *data)
{
    int rc = resolve_batch(o, s, ddp, data);

    if (rc != OPTS_GO)
        return rc;
    resolve_lr(s);
    resolve_averages(o, s);
    if (!opts_have(o, "warmup-epochs"))
        s->warmup_epochs = usual_schedule(s).warmup;
    return OPTS_GO;
}

/* One case per optimizer, then the options that several of them have. */
static struct ddp_optimizer choose_optimizer(const struct opts *o,
                                             const struct settings *s)
{
    struct ddp_optimizer opt = optimizer(s)->defaults;
    float *clip[] = {[CLIP_NORM] = &opt.clip_norm,
                     [CLIP_VALUE] = &opt.clip_value,
                     [CLIP_AGC] = &opt.clip_unit};

    opt.lr = (float)s->lr;
    if (optimizer(s)->uses & DDP_USES_MOMENTUM)
        opt.momentum = (float)s->momentum;
    if (opts_have(o, "opt-betas")) {
        opt.beta1 = (float)s->betas[0];
        opt.beta2 = (float)s->betas[1];
    }
    if (opts_have(o, "opt-eps"))
        opt.eps = (float)s->eps;
    opt.weight_decay = (float)s->weight_decay;
    opt.decay_all = s->decay_all;
    opt.lookahead = (int)s->lookahead;
    *clip[s->clip_mode] = (float)s->clip_grad;
    return opt;
}

/* What the options of a schedule change in it; others keep its defaults. */
static void choose_numbers(const struct opts *o, const struct settings *s,
                           struct ddp_schedule *to)
{
    const struct {
        const char *name;
        double value, *at;
    } row[] = {
        {"warmup-lr", s->warmup_lr / s->lr, &to->warmup_factor},
        {"lr-warmup-decay", s->warmup_decay, &to->warmup_factor},
        {"decay-epochs", s->decay_epochs, &to->every},
        {"decay-rate", s->decay_rate, &to->gamma},
        {"lr-power", s->power, &to->power},
        {"lr-cycle-mul", s->stretch, &to->stretch},
        {"plateau-threshold", s->plateau_threshold, &to->threshold},
        {"max-momentum", s->max_momentum, &to->max_momentum},
        {"base-momentum", s->base_momentum, &to->base_momentum},
        {"min-lr", s->min_lr / s->lr, &to->final_factor},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (opts_have(o, row[i].name))
            *row[i].at = row[i].value;
}

static struct ddp_schedule choose_schedule(const struct opts *o,
                                           const struct settings *s)
{
    struct ddp_schedule schedule = usual_schedule(s);

    schedule.warmup = s->warmup_epochs;
    schedule.warmup_steady = s->warmup_method == WARMUP_CONSTANT;
    schedule.warmup_prefix = s->warmup_prefix;
    schedule.warmup_inside = s->warmup_inside;
    choose_numbers(o, s, &schedule);
    schedule.noise_from = s->noise[0] * (double)s->epochs;
    schedule.noise_to = s->noise[1] * (double)s->epochs;
    schedule.noise_limit = s->noise_limit;
    schedule.noise_deviation = s->noise_deviation;
    schedule.noise_seed = (uint64_t)s->seed;
    for (int i = 0; i < DDP_MILESTONES && s->milestones[0]; i++)
        schedule.milestones[i] = i < OPT_WIDTHS_MAX ? s->milestones[i] : 0;
    if (opts_have(o, "patience-epochs"))
        schedule.patience = (int)s->plateau_patience;
    schedule.cooldown = (int)s->cooldown;
    if (opts_have(o, "max-momentum") && s->max_momentum == 0)
        schedule.base_momentum = 0;
    return schedule;
}

void recipe_config(const struct opts *o, const struct settings *s,
                   struct ddp_train_config *cfg)
{
    ddp_train_config_init(cfg);
    cfg->loss = s->loss == LOSS_BCE     ? DDP_BINARY_CROSS_ENTROPY
                : s->loss == LOSS_FOCAL ? DDP_FOCAL
                                        : DDP_LOGIT_CROSS_ENTROPY;
    cfg->focal_gamma = (float)s->focal_gamma;
    cfg->focal_alpha = (float)s->focal_alpha;
    cfg->target_threshold = (float)s->bce_threshold;
    cfg->distill_weight = s->distill_weight;
    cfg->distill_temperature = s->distill_temperature;
    cfg->mixup = s->mixup;
    cfg->cutmix = s->cutmix;
    cfg->mix_prob = s->mixup_prob;
    cfg->mix_switch_prob = s->mixup_switch_prob;
    cfg->mix_off_epoch = s->mixup_off_epoch;
    cfg->label_smoothing = (float)s->smoothing;
    cfg->optimizer = choose_optimizer(o, s);
    cfg->schedule = choose_schedule(o, s);
    cfg->sub_batch = (int)s->sub_batch;
    cfg->batch = (int)s->batch;
    cfg->lanes = (int)s->lanes;
    cfg->epochs = s->epochs;
    cfg->steps = s->steps;
    cfg->dtype = setup_dtype(s);
    cfg->seed = (uint64_t)s->seed;
    cfg->keep_weights = s->weights != NULL;
    cfg->max_nan_steps = (int)s->max_nan_steps;
    cfg->ema_decay = s->ema_decay;
    cfg->tta = setup_tta(s);
    cfg->drop_last = s->drop_last;
    cfg->sync_bn = s->sync_bn;
    cfg->repeats = (int)s->aug_repeats;
    cfg->shard_optimizer = s->shard_optimizer;
    cfg->ema_warmup = s->ema_warmup;
    cfg->patience = s->patience;
    cfg->every_steps = s->eval_steps;
    cfg->layer_decay = (float)s->layer_decay;
    cfg->wire = s->wire ? DDP_BF16 : DDP_F32;
}
