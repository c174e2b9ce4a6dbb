/* trainer.c - making a trainer, and its steps */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect.h"
#include "philox.h"
#include "trainer.h"

enum {
    LANES = 8,
    SUB_BATCH = 32,
    RUN_AHEAD = 2,
    RING_BYTES = 256 << 20, /* most input that is read ahead */
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

struct ddp__engine_spec ddp__trainer_spec(const struct ddp_trainer *t,
                                          struct ddp__loader *l,
                                          enum ddp__mode mode)
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
    spec = ddp__trainer_spec(t, &t->loader, DDP__TRAIN);
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

double ddp__trainer_lr(const struct ddp_trainer *t, int64_t step)
{
    double epochs = epoch_at(t, t->total);

    return t->cfg.optimizer.lr * ddp_schedule_factor(&t->cfg.schedule, step,
                                                     epoch_at(t, step), epochs);
}

int ddp__trainer_submit(struct ddp_trainer *t, bool update)
{
    int64_t step = t->submitted;
    struct ddp__step s = {
        .number = step,
        .subs = ddp__loader_sizes(&t->loader, step, t->sizes),
        .n = t->sizes,
        .seed = ddp__key(t->cfg.seed, 1, (uint64_t)(step / t->loader.steps)),
        .lr = (float)ddp__trainer_lr(t, step),
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

/* Wait for the oldest step that was not reported. */
int ddp__trainer_collect(struct ddp_trainer *t, struct ddp__result *r)
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

int ddp__trainer_drain(struct ddp_trainer *t, struct ddp__result *r)
{
    int rc = 0;

    while (rc == 0 && t->reported < t->submitted)
        rc = ddp__trainer_collect(t, r);
    return rc;
}

int ddp_step(ddp_trainer_t *t, struct ddp_metrics *m)
{
    struct ddp__result r = {.step = -1};
    int rc;

    /* The engine overwrites results older than its run-ahead. */
    while (t->submitted - t->reported >= t->cfg.run_ahead)
        if ((rc = ddp__trainer_collect(t, &r)) < 0)
            return rc;
    if ((rc = ddp__trainer_submit(t, true)) < 0 || !m)
        return rc;
    if ((rc = ddp__trainer_drain(t, &r)) < 0)
        return rc;
    *m = ddp__metrics(r.stats);
    return 0;
}

int ddp_gradients(ddp_trainer_t *t, struct ddp_metrics *m)
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
    int rc = ddp__trainer_drain(t, &r);

    return rc < 0 ? rc : ddp__engine_wait_all(t->engine);
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
