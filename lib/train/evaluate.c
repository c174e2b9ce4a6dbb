/* evaluate.c - loss, top-k and predictions on a data set, every sample once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/options.h"
#include "data/dataset.h"
#include "engine/step.h"
#include "graph/layer.h"
#include "train/evaluate.h"
#include "train/metrics.h"
#include "train/slice.h"
#include "train/trainer.h"

/* Sub-batches of a lane in a step of evaluation. */
enum { EVAL_ROUNDS = 4 };

struct ddp__eval {
    struct ddp__engine *engine;
    struct ddp__loader loader;
    int *sizes;             /* of a step's sub-batches; owned */
    int64_t ahead;          /* steps whose predictions have room */
    int64_t base;           /* the engine's steps before this evaluation */
    int64_t bad;            /* samples that were left out, of all ranks */
    int (*stop)(void *arg); /* may be NULL */
    void *stop_arg;
    ddp_count_f on_count; /* may be NULL */
    void *count_arg;
    /* With on_sample: the predictions of `ahead` steps; owned. */
    ddp_prediction_f on_sample;
    void *on_arg;
    int len; /* of one output */
    float *output;
    int32_t *label;
    int64_t *index;
};

/* ---- HOST functions of the graph ---------------------------------------- */

static int fill_input(const struct ddp__task *t, void *arg)
{
    return ddp__loader_fill(t, &((struct ddp__eval *)arg)->loader);
}

/* The address of the predictions for position `at` of a step. */
static size_t room_of(const struct ddp__eval *e, int64_t step, int64_t at)
{
    return (size_t)(step % e->ahead * e->loader.batch + at);
}

void ddp__eval_copy(float *out, const void *in, enum ddp_dtype type, size_t len)
{
    const uint16_t *half = in;

    if (type == DDP_F32)
        memcpy(out, in, len * sizeof(*out));
    else
        for (size_t i = 0; i < len; i++)
            out[i] = type == DDP_BF16 ? ddp__from_bf16(half[i])
                                      : ddp__from_f16(half[i]);
}

/* Keep the predictions of a sub-batch. */
static int keep_answers(const struct ddp__task *t, void *arg)
{
    struct ddp__eval *e = arg;
    int64_t step = (int64_t)(t->seed / (uint64_t)e->loader.subs);
    int64_t sub = (int64_t)(t->seed % (uint64_t)e->loader.subs);
    size_t at = room_of(e, step, sub * e->loader.sub_batch);
    float *out = e->output + at * (size_t)e->len;

    ddp__eval_copy(out, t->data[DDP__OUTPUT_Y],
                   t->call->buf[DDP__OUTPUT_Y].type,
                   ddp__len(t, DDP__OUTPUT_Y));
    for (int i = 0; i < t->n; i++)
        e->label[at + (size_t)i] =
            t->call->buf[DDP__OUTPUT_TARGET].type == DDP_I32
                ? ((const int32_t *)t->data[DDP__OUTPUT_TARGET])[i]
                : DDP__NO_LABEL;
    memcpy(e->index + at, t->data[DDP__OUTPUT_IDS],
           (size_t)t->n * sizeof(*e->index));
    return 0;
}

/* ---- making ------------------------------------------------------------- */

/* Samples of a step: all samples of a small data set. */
static int step_size(const struct ddp_train_config *c, const ddp_dataset_t *d)
{
    int64_t most = d->count < INT_MAX ? d->count : INT_MAX;
    int64_t wish = (int64_t)c->sub_batch * c->lanes * EVAL_ROUNDS;

    return (int)(wish < most ? wish : most);
}

/* Data without classes and targets get predictions, but no metrics: their
 * samples have no label, and there are as many classes as the chain has
 * outputs. */
static int classes_of(const ddp_dataset_t *d, const ddp_chain_t *chain)
{
    struct ddp_shape y;

    if (d->classes || d->target_len)
        return d->classes;
    return ddp__layer_shape(chain, d->shape, &y) < 0 ? 0 : y.h * y.w * y.c;
}

static int make_answers(struct ddp__eval *e)
{
    struct ddp_shape y = e->engine->graph->y->shape;
    size_t room = (size_t)e->ahead * (size_t)e->loader.batch;

    e->len = y.h * y.w * y.c;
    e->output = calloc(room * (size_t)e->len, sizeof(*e->output));
    e->label = calloc(room, sizeof(*e->label));
    e->index = calloc(room, sizeof(*e->index));
    if (!e->output || !e->label || !e->index)
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for %zu predictions of %d numbers: use "
                         "a smaller sub_batch, or fewer lanes",
                         room, e->len);
    return 0;
}

/* The configuration with a slice as its sub-batch: only for predictions, which
 * are each of one sample. */
static int slice_config(const struct ddp__eval *e, const ddp_t *ddp,
                        ddp_chain_t *chain, const ddp_dataset_t *data,
                        struct ddp_train_config *c)
{
    const struct ddp__graph_spec shape = {
        .shape = data->shape, .type = data->type, .dtype = c->dtype};
    int rc = e->on_sample ? ddp__slice_of(ddp, chain, &shape, c->sub_batch)
                          : c->sub_batch;

    if (rc > 0)
        c->sub_batch = rc;
    return rc;
}

static int make_evaluation(struct ddp__eval *e, ddp_t *ddp, ddp_chain_t *chain,
                           ddp_dataset_t *data,
                           const struct ddp_train_config *c)
{
    struct ddp_train_config own = *c;
    struct ddp__engine_spec spec;
    int rc;

    if ((rc = ddp__stream_refuse(data)) < 0 ||
        (rc = slice_config(e, ddp, chain, data, &own)) < 0)
        return rc;
    e->ahead = c->run_ahead;
    e->stop = c->stop;
    e->stop_arg = c->arg;
    e->on_count = c->on_eval_count;
    e->count_arg = c->arg;
    e->loader = ddp__loader(data, step_size(c, data), own.sub_batch);
    e->loader.status = &ddp->status;
    e->loader.shares = ddp__dataset_has_several(data);
    spec = ddp__engine_spec(&own, &e->loader, DDP__EVAL);
    spec.graph.classes = classes_of(data, chain);
    spec.graph.flip = c->tta == DDP_TTA_FLIP;
    spec.graph.fill = fill_input;
    spec.graph.output = e->on_sample ? keep_answers : NULL;
    spec.graph.arg = e;
    spec.shared = !e->on_sample; /* who wants predictions wants all of them */
    spec.count = &e->loader.bad;
    if (!(e->sizes = calloc((size_t)e->loader.subs, sizeof(*e->sizes))))
        return ddp__fail(DDP_ENOMEM, "out of memory to evaluate");
    if ((rc = ddp__engine_new(&e->engine, ddp, chain, &spec)) < 0)
        return rc;
    return e->on_sample ? make_answers(e) : 0;
}

int ddp__eval_new(struct ddp__eval **out, ddp_t *ddp, ddp_chain_t *chain,
                  ddp_dataset_t *data, const struct ddp_train_config *c,
                  ddp_prediction_f on_sample, void *arg)
{
    struct ddp__eval *e = calloc(1, sizeof(*e));
    int rc;

    if (!e)
        return ddp__fail(DDP_ENOMEM, "out of memory to evaluate");
    e->on_sample = on_sample;
    e->on_arg = arg;
    if ((rc = make_evaluation(e, ddp, chain, data, c)) < 0) {
        ddp__eval_free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void ddp__eval_free(struct ddp__eval *e)
{
    if (!e)
        return;
    ddp__engine_free(e->engine);
    free(e->sizes);
    free(e->output);
    free(e->label);
    free(e->index);
    free(e);
}

/* ---- running ------------------------------------------------------------ */

static int submit_step(struct ddp__eval *e, int64_t step)
{
    struct ddp__step s = {
        .number = step,
        .subs = ddp__loader_sizes(&e->loader, step, e->sizes),
        .n = e->sizes,
        .first = (uint64_t)step * (uint64_t)e->loader.subs,
    };

    return ddp__engine_step(e->engine, &s);
}

/* Give the predictions of a step to the caller, in the order of the data. */
static int deliver_predictions(struct ddp__eval *e, int64_t step)
{
    ddp_dataset_t *d = e->loader.data;
    int64_t n = d->count - step * e->loader.batch;

    n = n < e->loader.batch ? n : e->loader.batch;
    for (int64_t i = 0; e->on_sample && i < n; i++) {
        size_t at = room_of(e, step, i);
        struct ddp_prediction a = {
            .index = e->index[at],
            .label = e->label[at],
            .bad = ddp__dataset_is_bad(d, e->index[at]),
            .len = e->len,
            .output = e->output + at * (size_t)e->len,
        };

        if (e->on_sample(&a, e->on_arg) != 0)
            return ddp__fail(DDP_ESTOPPED, "stopped at sample %lld",
                             (long long)a.index);
    }
    return 0;
}

static int stop_now(struct ddp__eval *e)
{
    int rc = ddp__engine_wait_all(e->engine);

    return rc < 0 ? rc : ddp__fail(DDP_ESTOPPED, "stopped while evaluating");
}

/* Whether to continue, which the caller decides.  If not, wait for the
 * submitted steps.  Ranks stop all together: see finish_step(). */
static int go_on(struct ddp__eval *e)
{
    if (!e->stop || !e->stop(e->stop_arg))
        return 0;
    if (!ddp__comm_used(e->engine))
        return stop_now(e);
    ddp__comm_wish(e->engine, DDP__WISH_STOP);
    return 0;
}

/* Whoever wants to know how far it is. */
static void tell_count(const struct ddp__eval *e, int64_t step)
{
    int64_t count = e->loader.data->count;
    int64_t done = (step + 1) * e->loader.batch;

    if (e->on_count)
        e->on_count(done < count ? done : count, count, e->count_arg);
}

static int finish_step(struct ddp__eval *e, int64_t step, double *sum)
{
    struct ddp__result r;
    int rc = ddp__engine_wait(e->engine, e->base + step, &r);

    ddp__status_enter(&e->engine->ddp->status, DDP_PHASE_EVALUATING);
    if (rc < 0)
        return rc;
    for (int i = 0; i < DDP__STATS; i++)
        sum[i] += r.stats[i];
    e->bad = ddp__comm_used(e->engine) ? r.count : e->loader.bad;
    rc = deliver_predictions(e, step);
    tell_count(e, step);
    return rc == 0 && r.wishes & DDP__WISH_STOP ? stop_now(e) : rc;
}

struct ddp__engine *ddp__eval_engine(const struct ddp__eval *e)
{
    return e->engine;
}

int ddp__eval_run(struct ddp__eval *e, const struct ddp__ema *averages,
                  struct ddp_metrics *m)
{
    struct ddp__status *status = &e->engine->ddp->status;
    enum ddp_phase before = ddp__status_enter(status, DDP_PHASE_EVALUATING);
    double sum[DDP__STATS] = {0};
    int rc = 0;

    e->base = e->engine->submitted;
    e->engine->averages = averages;
    e->loader.bad = 0;
    ddp__comm_unwish(e->engine, DDP__WISH_STOP);
    for (int64_t k = 0; rc == 0 && k < e->loader.steps + e->ahead; k++) {
        if (k >= e->ahead)
            rc = finish_step(e, k - e->ahead, sum);
        if (rc == 0)
            rc = go_on(e);
        if (rc == 0 && k < e->loader.steps)
            rc = submit_step(e, k);
    }
    ddp__status_enter(status, before);
    sum[DDP__STAT_COUNT] -= (double)e->bad;
    if (rc == 0 && m)
        *m = ddp__metrics(sum);
    return rc;
}

static const struct ddp_evaluate_config defaults = {
    .struct_size = sizeof(defaults),
    .sub_batch = 32,
    .focal_gamma = 2,
    .focal_alpha = 0.25f,
};

void ddp_evaluate_config_init_sized(struct ddp_evaluate_config *c, size_t size)
{
    ddp__options_init(c, size, &defaults, sizeof(defaults));
}

/* The configuration of a trainer that evaluates so. */
static struct ddp_train_config
train_config(const struct ddp_evaluate_config *cfg)
{
    struct ddp_train_config c;

    ddp_train_config_init(&c);
    c.loss = cfg->loss;
    c.label_smoothing = cfg->label_smoothing;
    c.loss_fn = cfg->loss_fn;
    c.loss_arg = cfg->loss_arg;
    c.target_threshold = cfg->target_threshold;
    c.focal_gamma = cfg->focal_gamma;
    c.focal_alpha = cfg->focal_alpha;
    c.sub_batch = cfg->sub_batch;
    c.lanes = cfg->lanes;
    c.dtype = cfg->dtype;
    c.tta = cfg->tta;
    c.on_eval_count = cfg->on_count;
    c.arg = cfg->arg;
    return c;
}

int ddp_chain_evaluate(ddp_t *ddp, ddp_chain_t *chain, ddp_dataset_t *data,
                       const struct ddp_evaluate_config *given,
                       struct ddp_metrics *m)
{
    struct ddp_evaluate_config cfg = defaults;
    struct ddp__eval *e = NULL;
    struct ddp_train_config c;
    int rc;

    if (!ddp || !chain || !data)
        return ddp__fail_null(!ddp ? "ddp" : !chain ? "chain" : "data");
    if ((rc = ddp__options_copy(&cfg, sizeof(cfg), given,
                                "ddp_evaluate_config")) < 0)
        return rc;
    c = train_config(&cfg);
    if ((rc = ddp_train_config_resolve(&c, ddp, data)) == 0 &&
        (rc = ddp__eval_new(&e, ddp, chain, data, &c, cfg.on_sample,
                            cfg.arg)) == 0)
        rc = ddp__eval_run(e, NULL, m);
    ddp__eval_free(e);
    return rc;
}
