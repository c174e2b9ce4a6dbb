/* train_lines.c - the lines that "imagenet train" prints
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "checkpoint.h"
#include "image_cache.h"
#include "plan.h"
#include "setup_data.h"
#include "setup_network.h"
#include "train_lines.h"

void train_announce(const struct run *r)
{
    const struct settings *s = r->set;

    app_print("%s\n", ddp_version());
    app_print("devices: %s\n", ddp_describe(r->ddp));
    app_print("data: %s\n", ddp_dataset_describe(r->data));
    if (ddp_rank_count(r->ddp) > 1)
        app_print("ranks: %d\n", ddp_rank_count(r->ddp));
    if (r->val)
        app_print("validation: %s\n", ddp_dataset_describe(r->val));
    app_print("model: %s, %zu parameters, images of %lldx%lld, %lld classes, "
              "%s\n",
              s->model, setup_params(r->chain), (long long)s->img_size,
              (long long)s->img_size, (long long)s->classes,
              setup_dtype_name(s));
    plan_print(r->opts, s, r->ddp, r->trainer);
    app_print("run: %lld epochs of %lld steps, lr %g, seed %lld, output %s\n",
              (long long)s->epochs,
              (long long)ddp_trainer_epoch_steps(r->trainer), s->lr,
              (long long)s->seed, s->output);
}

static void print_ema(const struct run *r)
{
    if (r->evaluated && r->ema_evaluated == r->evaluated)
        app_print(" ema_loss=%.4f ema_top1=%.2f ema_top5=%.2f", r->ema.loss,
                  100 * r->ema.top1, 100 * r->ema.top5);
}

void train_print_evaluation(const struct run *r, double seconds)
{
    const struct ddp_metrics *m = &r->result;

    app_print("eval step=%lld samples=%lld loss=%.4f top1=%.2f top5=%.2f "
              "img/s=%.1f",
              (long long)r->last.step, (long long)m->samples, m->loss,
              100 * m->top1, 100 * m->top5, (double)m->samples / seconds);
    print_ema(r);
    app_print("\n");
}

void train_print_epoch(const struct run *r)
{
    const struct ddp_progress *p = &r->last;
    struct ddp_evaluation best;
    char time[32];

    app_print("epoch=%lld/%lld train_loss=%.4f train_top1=%.2f",
              (long long)p->epoch + 1, (long long)p->epochs, p->epoch_mean.loss,
              100 * p->epoch_mean.top1);
    if (r->evaluated == p->step)
        app_print(" eval_loss=%.4f eval_top1=%.2f", r->result.loss,
                  100 * r->result.top1);
    if (ddp_trainer_best(r->trainer, &best) > 0)
        app_print(" best_step=%lld best_top1=%.2f", (long long)best.step,
                  100 * best.result.top1);
    app_print(" time=%s\n", app_duration(p->seconds, time, sizeof(time)));
}

void train_report_checkpoints(struct run *r)
{
    struct ddp_checkpoint_failures f;

    if (ddp_trainer_checkpoint_failures(r->trainer, &f) < 0 ||
        f.count == r->ckpt_failures)
        return;
    progress_clear(&r->progress);
    checkpoint_report_failure(&f);
    r->ckpt_failures = f.count;
}

/* A file of the run, if it is there. */
static void print_file(const struct run *r, const char *name, const char *file)
{
    char *path = app_path(r->set->output, "%s", file);

    if (path && access(path, R_OK) == 0)
        app_print(" %s=%s", name, path);
    free(path);
}

/* The best evaluation, and where its weights and the last ones are. */
static void print_places(const struct run *r)
{
    const char *last = r->weights ? WEIGHTS : "ckpt/latest/model.safetensors";
    struct ddp_evaluation best;

    if (ddp_trainer_best(r->trainer, &best) > 0) {
        app_print(" best_step=%lld best_top1=%.2f", (long long)best.step,
                  100 * best.result.top1);
        print_file(r, "best",
                   best.step == r->last.step ? last
                                             : "ckpt/best/model.safetensors");
    }
    print_file(r, "last", last);
}

int train_print_final(struct run *r)
{
    const struct ddp_metrics *m =
        r->evaluated ? &r->result : &r->last.epoch_mean;
    uint32_t crc;
    int rc = ddp_chain_checksum(r->chain, &crc);

    if (rc < 0)
        return app_fail(rc);
    app_log_only(false);
    app_print("final step=%lld loss=%.4f top1=%.2f top5=%.2f img/s=%.1f",
              (long long)r->last.step, m->loss, 100 * m->top1, 100 * m->top5,
              r->last.samples_per_s);
    print_ema(r);
    if (image_cache_hits() >= 0)
        app_print(" cache-hits=%.1f%%", 100 * image_cache_hits());
    print_places(r);
    app_print(" weights=crc32c:%08x\n", crc);
    return 0;
}

void train_report_bad(const ddp_dataset_t *d)
{
    int64_t n = setup_report_bad(d, 0, "unreadable image, replaced by another");

    if (n)
        app_say("%lld unreadable images", (long long)n);
    setup_report_retries(d);
}

void train_report_skips(const ddp_trainer_t *t)
{
    struct ddp_skips s;

    if (ddp_trainer_skips(t, &s) < 0 || !s.steps)
        return;
    app_say("%lld steps were skipped, the last one was step %lld: %s",
            (long long)s.steps, (long long)s.last + 1, s.why);
    if (s.last + 1 == ddp_trainer_steps(t))
        app_say("no step was applied after it: the weights are those before");
}
