/* bench.c - a benchmark of training: its network, images and steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "bench.h"

/* Steps between the statistics before and those that count. */
enum { DRAINED = 3 };

enum ddp_dtype bench_dtype(const struct bench_settings *s)
{
    static const enum ddp_dtype type[] = {DDP_F32, DDP_BF16, DDP_F16};

    return type[s->dtype];
}

/* The first steps load modules, which must not count as idle time.  Reading the
 * statistics waits for the steps in flight, so a few more steps do not count.
 */
static int on_step(const struct ddp_progress *p, void *arg)
{
    struct bench *b = arg;
    int64_t n = b->done - b->skip - b->drained;
    double t = app_now();

    if (n >= 0 && n < b->want) {
        b->step_s[n] = t - b->last;
        parts_add(&b->parts, p, t - b->last);
    }
    if (b->drained && b->done + 1 == b->skip)
        ddp_trainer_stats(b->trainer, &b->before);
    if (b->done == 0)
        b->start_s = t - b->begin;
    b->last = t;
    b->done++;
    b->data_share = p->data_share;
    b->loss = p->now.loss;
    return b->until > 0 && t > b->until && n >= 0;
}

/* Backward takes twice as long as forward, but the images need no gradient. */
static int count_layer(const struct ddp_layer_info *l, void *arg)
{
    struct bench *b = arg;

    if (b->inspect)
        fprintf(stderr, "%-28s %-14s %10zu %12.3f MFLOP %10zu bytes kept\n",
                l->name, l->kind, l->params, l->flops * 1e-6,
                l->activation_size);
    if (b->roof.flops > 0)
        roof_add(&b->at_least, &b->roof, l);
    if (l->flops == 0)
        return 0;
    b->flops += l->flops * (b->first ? 2 : 3);
    b->first = false;
    return 0;
}

/* By default as many lanes as workers, and a batch of one sub-batch a lane. */
static void choose_batch(const struct bench *b, struct bench_settings *s)
{
    if (!s->lanes)
        s->lanes = s->batch ? (s->batch + s->sub_batch - 1) / s->sub_batch
                            : ddp_worker_count(b->ddp);
    if (!s->batch)
        s->batch = s->lanes * s->sub_batch;
}

ddp_chain_t *bench_model(const struct bench_settings *s)
{
    int size = (int)s->img_size, sizes[] = {size * size * 3, 512, 512, 0};
    struct ddp_model_options m;

    ddp_model_options_init(&m);
    m.classes = (int)s->classes;
    m.small_stem = s->small_stem;
    if (s->width)
        m.width = (int)s->width;
    if (!strcmp(s->model, "mlp"))
        m.sizes = sizes;
    return ddp_model_new(s->model, &m);
}

int bench_open(struct bench *b, struct bench_settings *s)
{
    struct ddp_config cfg;
    int rc;

    b->begin = app_now();
    if (!(b->chain = bench_model(s)))
        return app_fail(ddp_errcode());
    if ((rc = pool_fill(&b->pool, s)) != OPTS_GO)
        return rc;
    ddp_config_init(&cfg);
    if (s->workers)
        cfg.cpus = (int)s->workers;
    cfg.backend = s->backend ? "ref" : "cpu";
    b->ddp = ddp_init(&cfg);
    if (!b->ddp)
        return app_fail(ddp_errcode());
    choose_batch(b, s);
    return OPTS_GO;
}

int bench_count_work(struct bench *b, const struct bench_settings *s)
{
    struct ddp_shape shape = {(int)s->img_size, (int)s->img_size, 3};
    enum ddp_dtype type = bench_dtype(s);
    struct ddp_gpu_info gpu;
    int ranks = ddp_rank_count(b->ddp), n = ddp_gpu_count(b->ddp, &gpu), rc;

    if (!s->peak)
        b->peak.flops *= ranks;
    if (n)
        roof_of(&b->roof, &gpu, n * ranks, type);
    if (n && !s->peak && b->roof.flops > 0) {
        b->peak.flops = b->roof.flops;
        snprintf(b->peak_base, sizeof(b->peak_base), "%s", b->roof.base);
    }
    b->at_least = (struct roof_time){.element = type == DDP_F32 ? 4 : 2,
                                     .sub_batch = (double)s->sub_batch,
                                     .batch = (double)s->batch};
    rc = ddp_chain_inspect(b->chain, shape, type, count_layer, b);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

/* The steps that count, in a file for each rank. */
static int choose_trace(struct bench *b, const struct bench_settings *s,
                        struct ddp_train_config *cfg)
{
    int rank = ddp_rank(b->ddp);

    if (!s->trace)
        return OPTS_GO;
    if ((rank ? asprintf(&b->trace, "%s.%d", s->trace, rank)
              : asprintf(&b->trace, "%s", s->trace)) < 0) {
        b->trace = NULL;
        return app_exit_code(DDP_ENOMEM);
    }
    cfg->trace = b->trace;
    cfg->trace_first = s->skip + b->drained;
    cfg->trace_steps = s->steps;
    return OPTS_GO;
}

int bench_make_trainer(struct bench *b, const struct bench_settings *s)
{
    int size = (int)s->img_size, rc;
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    /* So slow that no network diverges, in batches of any size. */
    cfg.optimizer = ddp_momentum(1e-6f, 0.9f);
    cfg.dtype = bench_dtype(s);
    cfg.ema_decay = s->ema ? 0.9998 : 0;
    cfg.shard_optimizer = s->shard;
    cfg.seed = 1;
    cfg.on_step = on_step;
    cfg.arg = b;
    cfg.sub_batch = (int)s->sub_batch;
    cfg.batch = (int)s->batch;
    cfg.lanes = (int)s->lanes;
    b->drained = ddp_gpu_worker_count(b->ddp) ? DRAINED : 0;
    cfg.steps = s->skip + b->drained + s->steps;
    if ((rc = choose_trace(b, s, &cfg)) != OPTS_GO)
        return rc;
    b->data = ddp_dataset_callback(
        &(struct ddp_source){.count = s->batch * cfg.steps,
                             .shape = {size, size, 3},
                             .type = s->input ? DDP_F32 : DDP_U8,
                             .classes = (int)s->classes,
                             .get = pool_get,
                             .arg = &b->pool});
    if (!b->data ||
        !(b->trainer = ddp_trainer_new(b->ddp, b->chain, b->data, &cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}

void bench_close_model(struct bench *b)
{
    ddp_chain_free(b->chain);
    ddp_finish(b->ddp);
    free(b->pool.data);
    b->chain = NULL;
    b->ddp = NULL;
    b->pool.data = NULL;
}

void bench_close(struct bench *b)
{
    ddp_trainer_free(b->trainer);
    ddp_dataset_free(b->data);
    bench_close_model(b);
    free(b->step_s);
    free(b->trace);
}
