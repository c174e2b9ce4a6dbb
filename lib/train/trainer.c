/* trainer.c - create a trainer, ask what it has done, free it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "data/dataset.h"
#include "engine/common.h"
#include "engine/near.h"
#include "graph/param_values.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "runtime/trace.h"
#include "train/agree.h"
#include "train/checkpoints.h"
#include "train/evaluate.h"
#include "train/groups.h"
#include "train/memory.h"
#include "train/own.h"
#include "train/sinks.h"
#include "train/trainer.h"

enum { RING_BYTES = 256 << 20 }; /* most input that is read ahead */

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

static struct ddp__loss loss_spec(const struct ddp_train_config *c,
                                  const struct ddp__loader *l,
                                  enum ddp__mode mode)
{
    bool taught = mode == DDP__TRAIN && c->teacher;

    return (struct ddp__loss){
        .kind = c->loss,
        .smoothing = l->class_weight ? 0 : c->label_smoothing,
        .fn = c->loss_fn,
        .arg = c->loss_arg,
        .threshold = c->target_threshold,
        .gamma = c->focal_gamma,
        .alpha = c->focal_alpha,
        .positives = l->pos_weight != NULL,
        .taught = taught ? (float)c->distill_weight : 0,
    };
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
                  .loss = loss_spec(c, l, mode),
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
    spec.divides = t->divides_sums;
    spec.shard_sums = spec.shard && t->divides_sums &&
                      t->cfg.optimizer.clip_norm <= 0 && !t->cfg.keep_gradients;
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
        ddp__agree_on_trainer(t, make_trainer(t)) < 0 ||
        ddp__common_new(t->engine) < 0 || ddp__near_new(t->engine) < 0) {
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
