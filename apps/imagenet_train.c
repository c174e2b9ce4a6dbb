/* imagenet_train.c - "imagenet train": train, evaluate, save
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app.h"
#include "imagenet.h"
#include "progress.h"

/* One run and what it holds; all owned but opts and settings. */
struct run {
    const struct opts *opts;
    struct settings *set;
    ddp_t *ddp;
    ddp_dataset_t *data, *val;
    ddp_chain_t *chain;
    ddp_trainer_t *trainer;
    struct progress progress;
    struct ddp_progress last;  /* of the last step */
    struct ddp_metrics result; /* of the last evaluation */
    int64_t evaluated;         /* the step it was made after; 0: none */
    int64_t epochs_done;
    int rc; /* exit code of what failed in a callback */
};

/* ---- what is left in the folder of the run ------------------------------ */

/* runs/resnet18-20260131-142501 */
static char *default_output(const struct settings *s)
{
    char clock[32] = "";
    time_t t = time(NULL);
    struct tm tm;

    if (localtime_r(&t, &tm))
        strftime(clock, sizeof(clock), "%Y%m%d-%H%M%S", &tm);
    return app_path("runs", "%s-%s", s->model, clock);
}

/* Shows, before any work is done, that the folder can be written to. */
static int save_config(const struct run *r)
{
    char *path = app_path(r->set->output, "config.txt");
    FILE *f;

    if (!path)
        return app_exit_code(DDP_ENOMEM);
    if (!(f = fopen(path, "w"))) {
        app_say("%s: %s", path, strerror(errno));
        free(path);
        return EXIT_WRITE;
    }
    opts_save(r->opts, f);
    if (fclose(f) != 0) {
        app_say("%s: %s", path, strerror(errno));
        free(path);
        return EXIT_WRITE;
    }
    free(path);
    return OPTS_GO;
}

static int prepare_output(struct run *r)
{
    struct settings *s = r->set;
    int rc;

    if (!s->output && !(s->output = default_output(s)))
        return app_exit_code(DDP_ENOMEM);
    if ((rc = app_make_dir(s->output)))
        return rc;
    return save_config(r);
}

static int save_weights(struct run *r, char *path)
{
    int rc = path ? ddp_chain_save(r->chain, path) : DDP_ENOMEM;

    progress_clear(&r->progress);
    if (rc < 0)
        rc = app_fail(rc);
    else
        printf("saved %s\n", path);
    free(path);
    return rc;
}

/* ---- while it runs ------------------------------------------------------ */

static int evaluate(struct run *r)
{
    const struct ddp_metrics *m = &r->result;
    double t = app_now();
    int rc = ddp_evaluate(r->trainer, r->val, &r->result);

    progress_clear(&r->progress);
    if (rc < 0)
        return app_fail(rc);
    t = app_now() - t;
    r->evaluated = r->last.step;
    printf("eval step=%lld samples=%lld loss=%.4f top1=%.2f top5=%.2f "
           "img/s=%.1f\n",
           (long long)r->last.step, (long long)m->samples, m->loss,
           100 * m->top1, 100 * m->top5, (double)m->samples / t);
    return 0;
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    r->last = *p;
    progress_step(&r->progress, p);
    return app_signal() != 0;
}

static int on_epoch(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;
    const struct settings *s = r->set;
    int64_t epoch = ++r->epochs_done;

    (void)p;
    progress_flush(&r->progress, &r->last);
    if (app_signal())
        return 1;
    if (r->val && epoch % s->eval_every == 0 && (r->rc = evaluate(r)))
        return 1;
    if (s->save_every && epoch % s->save_every == 0)
        r->rc = save_weights(r, app_path(s->output,
                                         "weights-epoch-%03lld.safetensors",
                                         (long long)epoch));
    return r->rc != 0;
}

/* ---- before and after --------------------------------------------------- */

static void announce(const struct run *r)
{
    const struct settings *s = r->set;
    long long subs = (s->batch + s->sub_batch - 1) / s->sub_batch;

    printf("%s\n", ddp_version());
    printf("devices: %s\n", ddp_describe(r->ddp));
    printf("data: %s\n", ddp_dataset_describe(r->data));
    if (r->val)
        printf("validation: %s\n", ddp_dataset_describe(r->val));
    printf("model: %s, %zu parameters, images of %lldx%lld, %lld classes, "
           "%s\n",
           s->model, setup_params(r->chain), (long long)s->img_size,
           (long long)s->img_size, (long long)s->classes,
           s->dtype ? "bf16" : "f32");
    printf("batch: %lld images a step, on all %d devices together: %lld "
           "sub-batches of up to %lld in %lld lanes\n",
           (long long)s->batch, ddp_worker_count(r->ddp), subs,
           (long long)s->sub_batch, (long long)s->lanes);
    printf("run: %lld epochs of %lld steps, lr %g, seed %lld, output %s\n",
           (long long)s->epochs,
           (long long)plan_epoch_steps(s, ddp_dataset_count(r->data)), s->lr,
           (long long)s->seed, s->output);
}

static int open_data(struct run *r)
{
    struct settings *s = r->set;
    int classes, rc;

    if ((rc = setup_data(r->opts, s, s->data, DDP_TRAIN, &r->data)) != OPTS_GO)
        return rc;
    classes = ddp_dataset_classes(r->data);
    if (!s->classes)
        s->classes = classes;
    if (s->classes < classes) {
        app_say("--num-classes %lld is less than the %d classes of the data",
                (long long)s->classes, classes);
        return EXIT_USAGE;
    }
    if (s->no_val)
        return OPTS_GO;
    rc = setup_data(r->opts, s, s->val_data ? s->val_data : s->data, DDP_VAL,
                    &r->val);
    if (rc != OPTS_GO)
        app_say("without validation images, train with --no-val");
    return rc;
}

static int make_trainer(struct run *r)
{
    struct ddp_train_config cfg;
    int rc;

    if (!(r->chain = setup_model(r->set)))
        return app_fail(ddp_errcode());
    if (r->set->weights && (rc = ddp_chain_load(r->chain, r->set->weights)) < 0)
        return app_fail(rc);
    plan_config(r->opts, r->set, &cfg);
    cfg.on_step = on_step;
    cfg.on_epoch = on_epoch;
    cfg.arg = r;
    if (!(r->trainer = ddp_trainer_new(r->ddp, r->chain, r->data, &cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}

static int prepare(struct run *r)
{
    struct settings *s = r->set;
    int rc;

    if ((rc = setup_model_known(r->opts, s)) != OPTS_GO ||
        (rc = plan_check(r->opts, s)) != OPTS_GO ||
        (rc = setup_weights_there(r->opts, s)) != OPTS_GO ||
        (rc = open_data(r)) != OPTS_GO ||
        (rc = setup_devices(s, &r->ddp)) != OPTS_GO ||
        (rc = plan_resolve(r->opts, s, ddp_worker_count(r->ddp),
                           ddp_dataset_count(r->data))) != OPTS_GO ||
        (rc = make_trainer(r)) != OPTS_GO)
        return rc;
    return prepare_output(r);
}

/* The line that scripts read. */
static int print_final(struct run *r)
{
    const struct ddp_metrics *m =
        r->evaluated ? &r->result : &r->last.epoch_mean;
    uint32_t crc;
    int rc = ddp_chain_checksum(r->chain, &crc);

    if (rc < 0)
        return app_fail(rc);
    printf("final step=%lld loss=%.4f top1=%.2f top5=%.2f img/s=%.1f "
           "weights=crc32c:%08x\n",
           (long long)r->last.step, m->loss, 100 * m->top1, 100 * m->top5,
           r->last.samples_per_s, crc);
    return 0;
}

static void report_bad(const ddp_dataset_t *d)
{
    struct ddp_bad_sample b;
    int64_t n = d ? ddp_dataset_bad_count(d) : 0;

    for (int64_t i = 0; i < n && ddp_dataset_bad(d, i, &b) == 0; i++)
        app_say("unreadable, replaced by another: %s: %s", b.path, b.why);
    if (n)
        app_say("%lld unreadable images", (long long)n);
}

static int train(struct run *r)
{
    int rc = ddp_train(r->trainer), signal = app_signal();
    struct ddp_stats stats;

    /* Steps that were under way when a callback said stop are done as well. */
    if (rc == DDP_ESTOPPED && ddp_trainer_stats(r->trainer, &stats) == 0)
        r->last.step = stats.steps;
    progress_flush(&r->progress, &r->last);
    progress_clear(&r->progress);
    report_bad(r->data);
    if (r->rc)
        return r->rc;
    if (rc < 0 && !(rc == DDP_ESTOPPED && signal))
        return app_fail(rc);
    if (!signal && r->val && r->evaluated != r->last.step && (rc = evaluate(r)))
        return rc;
    if (signal)
        app_say("stopped by signal %d after step %lld", signal,
                (long long)r->last.step);
    rc = save_weights(r, app_path(r->set->output, "weights.safetensors"));
    if (rc || (rc = print_final(r)))
        return rc;
    return signal ? EXIT_SIGNAL + signal : 0;
}

int train_run(struct opts *o, struct settings *s)
{
    struct run r = {.opts = o, .set = s};
    int rc = prepare(&r);

    if (rc == OPTS_GO) {
        announce(&r);
        progress_begin(&r.progress, s->log_every,
                       plan_epoch_steps(s, ddp_dataset_count(r.data)));
        rc = train(&r);
    }
    ddp_trainer_free(r.trainer);
    ddp_dataset_free(r.val);
    ddp_dataset_free(r.data);
    ddp_chain_free(r.chain);
    ddp_finish(r.ddp);
    return rc;
}
