/* trainer_evaluate.c - the evaluations of a trainer, and which was the best
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "data/dataset.h"
#include "engine/step.h"
#include "graph/layer.h"
#include "train/evaluate.h"
#include "train/memory.h"
#include "train/plateau.h"
#include "train/sinks.h"
#include "train/trainer.h"

/* Classes are evaluated by their cross entropy alone, as in timm: without
 * smoothing and weights, with any loss of the training; unless a sample has
 * several. */
static struct ddp_train_config evaluated(const struct ddp_train_config *c,
                                         const ddp_dataset_t *data)
{
    struct ddp_train_config own = *c;

    if (data->classes && ddp__loss_info(c->loss)->target == DDP__TARGET_CLASS) {
        if (!ddp__dataset_has_several(data))
            own.loss = DDP_LOGIT_CROSS_ENTROPY;
        own.label_smoothing = own.target_threshold = 0;
    }
    return own;
}

static int evaluate_chain(ddp_trainer_t *t, ddp_dataset_t *data,
                          const struct ddp__ema *averages,
                          struct ddp_metrics *m)
{
    int rc = ddp__trainer_check(t);

    if (rc < 0 || !data)
        return rc < 0 ? rc : ddp__fail_null("data");
    if (!t->eval || t->eval_data != data) {
        struct ddp_train_config c = evaluated(&t->cfg, data);

        ddp__eval_free(t->eval);
        t->eval = NULL;
        t->eval_data = data;
        if ((rc = ddp__eval_new(&t->eval, t->ddp, t->chain, data, &c, NULL,
                                NULL)) < 0 ||
            (rc = ddp__memory_evaluate(t, ddp__eval_engine(t->eval))) < 0) {
            t->eval_data = NULL;
            return rc;
        }
    }
    return ddp__eval_run(t->eval, averages, m);
}

/* What follows from the first evaluation after a step. */
static void note_evaluation(ddp_trainer_t *t, bool classes,
                            const struct ddp_metrics *m)
{
    const struct ddp_schedule *s = &t->cfg.schedule;

    t->run.stale++;
    if (s->kind == DDP_PLATEAU)
        ddp__plateau_note(&t->run.plateau, s, t->cfg.optimizer.lr,
                          classes ? m->top1 : m->loss, classes);
}

static void remember_result(ddp_trainer_t *t, bool classes,
                            const struct ddp_metrics *m)
{
    struct ddp__run *r = &t->run;
    const struct ddp_metrics *best = &r->best_evaluation;

    if (r->evaluated != t->submitted)
        note_evaluation(t, classes, m);
    r->evaluated = t->submitted;
    r->evaluation = *m;
    if (!r->best || (classes ? m->top1 > best->top1 : m->loss < best->loss)) {
        r->best = t->submitted;
        r->best_evaluation = *m;
        r->stale = 0;
    }
}

static void tell_sinks(const ddp_trainer_t *t, bool averages,
                       const struct ddp_metrics *m, double begin)
{
    const struct ddp_evaluation e = {.step = t->submitted,
                                     .averages = averages,
                                     .result = *m,
                                     .seconds = ddp__now() - begin};

    ddp__sinks_eval(t, &e);
}

int ddp_trainer_evaluate(ddp_trainer_t *t, ddp_dataset_t *data,
                         struct ddp_metrics *m)
{
    struct ddp_metrics own = {0};
    double begin;
    int rc;

    m = m ? m : &own;
    begin = ddp__now();
    if ((rc = evaluate_chain(t, data, NULL, m)) < 0)
        return rc;
    remember_result(t, data->classes > 0, m);
    tell_sinks(t, false, m, begin);
    return 0;
}

int ddp_trainer_evaluate_ema(ddp_trainer_t *t, ddp_dataset_t *data,
                             struct ddp_metrics *m)
{
    struct ddp_metrics own = {0};
    double begin = ddp__now();
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    m = m ? m : &own;
    if (!t->engine->ema)
        return ddp__fail(
            DDP_EINVAL,
            "the trainer keeps no averages of the weights: set ema_decay");
    if ((rc = ddp__ema_begin(t->engine->ema)) < 0 ||
        (rc = evaluate_chain(t, data, t->engine->ema, m)) < 0)
        return rc;
    t->run.ema_evaluated = t->submitted;
    t->run.ema_evaluation = *m;
    tell_sinks(t, true, m, begin);
    return 0;
}

int ddp_trainer_best(const ddp_trainer_t *t, struct ddp_evaluation *e)
{
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    if (!e)
        return ddp__fail(DDP_EINVAL, "e is NULL");
    *e = (struct ddp_evaluation){.step = t->run.best,
                                 .result = t->run.best_evaluation};
    return t->run.best > 0;
}
