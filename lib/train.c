/* train.c - the trainer: steps, epochs, progress, evaluation */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "inspect.h"
#include "loader.h"
#include "philox.h"

enum {
    LANES = 8,
    SUB_BATCH = 32,
    RUN_AHEAD = 2,
    RING_BYTES = 256 << 20, /* most input that is read ahead */
    EVAL_ROUNDS = 4,        /* sub-batches of a lane in a step of evaluation */
};

struct ddp_trainer {
    ddp_t *ddp; /* not owned, like chain and data */
    ddp_chain_t *chain;
    struct ddp_train_config cfg; /* resolved: no zeros that mean a default */
    struct ddp__loader loader;
    struct ddp__engine *engine;
    int *sizes; /* of a step's sub-batches; owned */
    int64_t total, submitted, reported;
    struct ddp__loader eval_loader;
    struct ddp__engine *eval; /* for eval_data; made at first use */
    ddp_dataset_t *eval_data; /* not owned */
    double begin, last, step_s, data_s;
    struct ddp_metrics epoch; /* sums */
    double epoch_divisor;
    bool gradients; /* the last step left gradients, of this divisor */
    double divisor;
};

/* ---- making ------------------------------------------------------------- */

static int check_config(const struct ddp_train_config *c)
{
    if (c->sub_batch < 0 || c->batch < 0 || c->lanes < 0 || c->epochs < 0 ||
        c->steps < 0 || c->run_ahead < 0)
        return ddp__fail(DDP_EINVAL, "batch, sub_batch, lanes, epochs, steps "
                                     "and run_ahead must not be negative");
    if (!(c->optimizer.lr >= 0))
        return ddp__fail(DDP_EINVAL, "a learning rate of %g",
                         (double)c->optimizer.lr);
    if (c->dtype != DDP_F32 && c->dtype != DDP_BF16)
        return ddp__fail(DDP_EINVAL, "activations are DDP_F32 or DDP_BF16");
    if (c->dtype == DDP_BF16 && !ddp__codelets_bf16())
        return ddp__fail(DDP_ENODEV, "this processor has no bf16 arithmetic "
                                     "that the backend uses: take f32");
    if (c->loss == DDP_OWN_LOSS && !c->loss_fn)
        return ddp__fail(DDP_EINVAL, "DDP_OWN_LOSS needs loss_fn");
    if (c->label_smoothing < 0 || c->label_smoothing >= 1)
        return ddp__fail(DDP_EINVAL, "label smoothing %g, wants 0 <= s < 1",
                         (double)c->label_smoothing);
    return 0;
}

static void resolve(struct ddp_train_config *c, const ddp_dataset_t *d)
{
    int subs;

    if (!c->sub_batch)
        c->sub_batch = SUB_BATCH;
    if (!c->batch)
        c->batch = (c->lanes ? c->lanes : LANES) * c->sub_batch;
    if (c->batch > d->count)
        c->batch = (int)d->count;
    if (c->sub_batch > c->batch)
        c->sub_batch = c->batch;
    subs = (c->batch + c->sub_batch - 1) / c->sub_batch;
    if (!c->lanes)
        c->lanes = subs < LANES ? subs : LANES;
    if (!c->epochs)
        c->epochs = 1;
    if (!c->run_ahead)
        c->run_ahead = RUN_AHEAD;
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

static struct ddp__engine_spec
spec_of(const struct ddp_trainer *t, struct ddp__loader *l, enum ddp__mode mode)
{
    const ddp_dataset_t *d = l->data;
    struct ddp__engine_spec s = {
        .graph = {.mode = mode,
                  .shape = d->shape,
                  .type = d->type,
                  .dtype = t->cfg.dtype,
                  .cap = t->cfg.sub_batch,
                  .classes = d->classes,
                  .target_len = d->target_len,
                  .loss = {t->cfg.loss, t->cfg.label_smoothing, t->cfg.loss_fn,
                           t->cfg.loss_arg},
                  .fill = ddp__loader_fill,
                  .arg = l},
        .lanes = t->cfg.lanes,
        .run_ahead = t->cfg.run_ahead,
        .ring = ring_length(&t->cfg, d, l->subs),
        .optimizer = mode == DDP__TRAIN ? &t->cfg.optimizer : NULL,
    };

    memcpy(s.graph.mean, d->mean, sizeof(s.graph.mean));
    memcpy(s.graph.std, d->std, sizeof(s.graph.std));
    return s;
}

/* Say no before the first task when the machine is too small. */
static int check_memory(const struct ddp_trainer *t)
{
    const struct ddp__params *p = t->engine->params;
    double have =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    int lanes = t->cfg.lanes < t->ddp->workers ? t->cfg.lanes : t->ddp->workers;
    double weights = 4.0 * (double)p->total, mib = 1 << 20;
    double act = (double)ddp__graph_peak(t->engine->graph) * lanes;
    double need = weights * (3 + lanes) + act;

    if (need <= have)
        return 0;
    return ddp__fail(DDP_ENOMEM,
                     "this needs %.0f MiB: %.0f of weights and optimizer, %.0f "
                     "of gradients, %.0f of activations for %d sub-batches of "
                     "%d in flight; the machine has %.0f: take a smaller "
                     "sub_batch, or fewer workers",
                     need / mib, 3 * weights / mib, weights * lanes / mib,
                     act / mib, lanes, t->cfg.sub_batch, have / mib);
}

static int make(struct ddp_trainer *t, ddp_dataset_t *data)
{
    struct ddp__engine_spec spec;
    int rc;

    resolve(&t->cfg, data);
    t->loader = ddp__loader(data, t->cfg.batch, t->cfg.sub_batch);
    t->loader.seed = t->cfg.seed;
    t->loader.shuffle = t->cfg.order == DDP_SHUFFLE;
    t->loader.replace = true;
    t->total = t->cfg.steps ? t->cfg.steps : t->cfg.epochs * t->loader.steps;
    if (t->cfg.steps)
        t->cfg.epochs = (t->total + t->loader.steps - 1) / t->loader.steps;
    if (!(t->sizes = calloc((size_t)t->loader.subs, sizeof(*t->sizes))))
        return ddp__fail(DDP_ENOMEM, "no memory for a trainer");
    spec = spec_of(t, &t->loader, DDP__TRAIN);
    if ((rc = ddp__engine_new(&t->engine, t->ddp, t->chain, &spec)) < 0 ||
        (rc = check_memory(t)) < 0)
        return rc;
    return t->cfg.keep_weights ? 0 : ddp_chain_init(t->chain, t->cfg.seed);
}

ddp_trainer_t *ddp_trainer_new(ddp_t *ddp, ddp_chain_t *chain,
                               ddp_dataset_t *data,
                               const struct ddp_train_config *cfg)
{
    static const struct ddp_train_config none;
    struct ddp_trainer *t;

    if (!ddp || !chain || !data)
        return NULL; /* their constructors said why */
    if (check_config(cfg ? cfg : &none) < 0)
        return NULL;
    if (!(t = calloc(1, sizeof(*t)))) {
        ddp__fail(DDP_ENOMEM, "no memory for a trainer");
        return NULL;
    }
    t->ddp = ddp;
    t->chain = chain;
    t->cfg = cfg ? *cfg : none;
    if (make(t, data) < 0) {
        ddp_trainer_free(t);
        return NULL;
    }
    return t;
}

void ddp_trainer_free(ddp_trainer_t *t)
{
    if (!t)
        return;
    ddp__engine_free(t->engine);
    ddp__engine_free(t->eval);
    free(t->sizes);
    free(t);
}

/* ---- steps -------------------------------------------------------------- */

static double epoch_at(const struct ddp_trainer *t, int64_t step)
{
    return (double)step / (double)t->loader.steps;
}

static double lr_at(const struct ddp_trainer *t, int64_t step)
{
    double epochs = epoch_at(t, t->total);

    return t->cfg.optimizer.lr * ddp_schedule_factor(&t->cfg.schedule, step,
                                                     epoch_at(t, step), epochs);
}

static int submit(struct ddp_trainer *t, bool update)
{
    int64_t step = t->submitted;
    struct ddp__step s = {
        .number = step,
        .subs = ddp__loader_sizes(&t->loader, step, t->sizes),
        .n = t->sizes,
        .seed = ddp__key(t->cfg.seed, 1, (uint64_t)(step / t->loader.steps)),
        .lr = (float)lr_at(t, step),
        .t = step + 1,
        .update = update,
        .first = (uint64_t)step * (uint64_t)t->loader.subs,
    };
    int rc = ddp__engine_step(t->engine, &s);

    if (rc == 0)
        t->submitted++;
    t->gradients = !update;
    return rc;
}

static struct ddp_metrics metrics_of(const double *stats)
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

/* Wait for the oldest step that was not reported. */
static int collect(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = ddp__engine_wait(t->engine, t->reported, r);

    if (rc < 0)
        return rc;
    t->reported++;
    t->divisor = r->stats[DDP__STAT_DIVISOR];
    if (!isfinite(r->stats[DDP__STAT_LOSS]))
        return ddp__fail(DDP_EDIVERGED,
                         "the loss of step %lld is not finite: try a smaller "
                         "learning rate, warm-up or clip_norm",
                         (long long)t->reported - 1);
    return 0;
}

static int drain(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = 0;

    while (rc == 0 && t->reported < t->submitted)
        rc = collect(t, r);
    return rc;
}

int ddp_step(ddp_trainer_t *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    /* The engine overwrites results older than its run-ahead. */
    while (t->submitted - t->reported >= t->cfg.run_ahead)
        if ((rc = collect(t, &r)) < 0)
            return rc;
    if ((rc = submit(t, true)) < 0 || !m)
        return rc;
    if ((rc = drain(t, &r)) < 0)
        return rc;
    *m = metrics_of(r.stats);
    return 0;
}

int ddp_gradients(ddp_trainer_t *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    if ((rc = drain(t, &r)) < 0 || (rc = submit(t, false)) < 0 ||
        (rc = drain(t, &r)) < 0)
        return rc;
    if (m)
        *m = metrics_of(r.stats);
    return 0;
}

int ddp_trainer_gradient(ddp_trainer_t *t, const char *name, float *out,
                         size_t len)
{
    if (!t->gradients || t->divisor == 0)
        return ddp__fail(DDP_EINVAL, "no gradients: call ddp_gradients() "
                                     "first, with at least one sample");
    return ddp__engine_gradient(t->engine, name, out, len, 1 / t->divisor);
}

int ddp_wait(ddp_trainer_t *t)
{
    struct ddp__result r;
    int rc = drain(t, &r);

    return rc < 0 ? rc : ddp__engine_wait_all(t->engine);
}

/* ---- the run ------------------------------------------------------------ */

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

    return metrics_of(s);
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
        .now = metrics_of(r->stats),
        .lr = lr_at(t, t->reported - 1),
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

    if ((rc = collect(t, &r)) < 0)
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
        rc = may_submit(t) ? submit(t, true) : report(t);
    if (rc == DDP_ESTOPPED && drain(t, &r) == 0)
        ddp__fail(rc, "stopped after step %lld", (long long)t->reported);
    return rc;
}

/* ---- evaluation --------------------------------------------------------- */

static int make_eval(struct ddp_trainer *t, ddp_dataset_t *data)
{
    int batch = t->cfg.sub_batch * t->cfg.lanes * EVAL_ROUNDS;
    struct ddp__engine_spec spec;

    if (t->eval && t->eval_data == data)
        return 0;
    ddp__engine_free(t->eval);
    t->eval = NULL;
    t->eval_data = data;
    t->eval_loader = ddp__loader(data, batch, t->cfg.sub_batch);
    spec = spec_of(t, &t->eval_loader, DDP__EVAL);
    return ddp__engine_new(&t->eval, t->ddp, t->chain, &spec);
}

static int eval_step(struct ddp_trainer *t, int64_t step, int *sizes)
{
    struct ddp__step s = {
        .number = step,
        .subs = ddp__loader_sizes(&t->eval_loader, step, sizes),
        .n = sizes,
        .first = (uint64_t)step * (uint64_t)t->eval_loader.subs,
    };

    return ddp__engine_step(t->eval, &s);
}

static int eval_all(struct ddp_trainer *t, int *sizes, double *sum)
{
    int64_t base = t->eval->submitted, steps = t->eval_loader.steps;
    int64_t ahead = t->cfg.run_ahead, done = 0;
    struct ddp__result r;
    int rc;

    for (int64_t k = 0; k < steps + ahead; k++) {
        if (k >= ahead && done < steps) {
            if ((rc = ddp__engine_wait(t->eval, base + done++, &r)) < 0)
                return rc;
            for (int i = 0; i < DDP__STATS; i++)
                sum[i] += r.stats[i];
        }
        if (k < steps && (rc = eval_step(t, k, sizes)) < 0)
            return rc;
    }
    return 0;
}

int ddp_evaluate(ddp_trainer_t *t, ddp_dataset_t *data, struct ddp_metrics *m)
{
    double sum[DDP__STATS] = {0};
    int *sizes, rc;

    if (!t || !data)
        return DDP_EINVAL; /* their constructors said why */
    if ((rc = make_eval(t, data)) < 0)
        return rc;
    sizes = calloc((size_t)t->eval_loader.subs, sizeof(*sizes));
    if (!sizes)
        return ddp__fail(DDP_ENOMEM, "no memory to evaluate");
    rc = eval_all(t, sizes, sum);
    free(sizes);
    if (rc == 0)
        *m = metrics_of(sum);
    return rc;
}

int ddp_trainer_stats(ddp_trainer_t *t, struct ddp_stats *s)
{
    const struct ddp__engine *e = t->engine;

    starpu_task_wait_for_all();
    *s = (struct ddp_stats){
        .steps = e->finished,
        .wall_s = e->last_end - e->first_submit,
        .sched_s = e->submit_s,
        .peak_bytes = ddp__pool_peak(),
        .flops = e->flops,
    };
    for (int w = 0; w < DDP__MAX_WORKERS; w++) {
        const struct ddp__busy *b = &e->flow.busy[w];

        s->tasks += b->tasks;
        s->exec_s += b->exec_s;
        s->data_s += b->data_s;
        s->sched_s += b->gap_s;
    }
    return 0;
}
