/* train_events.c - what "imagenet train" does between steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/interrupt.h"
#include "common/start_clock.h"
#include "board_network.h"
#include "setup_data.h"
#include "train_events.h"
#include "train_folder.h"
#include "train_lines.h"

/* So many skipped steps are reported one by one. */
enum { SKIPS_REPORTED = 10 };

static int should_stop(void *arg)
{
    (void)arg;
    return interrupt_wanted();
}

bool train_is_evaluated(const struct run *r)
{
    return r->evaluated == r->last.step &&
           (r->set->ema_decay == 0 || r->ema_evaluated == r->last.step);
}

static void on_eval_count(int64_t done, int64_t count, void *arg)
{
    work_count(done, count, &((struct run *)arg)->work);
}

int train_evaluate(struct run *r)
{
    bool averages = r->set->ema_decay > 0;
    struct ddp_metrics m, ema = {0};
    double t = app_now();
    int rc;

    progress_clear(&r->progress);
    work_begin(&r->work, "eval", false);
    rc = ddp_trainer_evaluate(r->trainer, r->val, &m);
    t = app_now() - t;
    if (rc == 0 && averages)
        rc = ddp_trainer_evaluate_ema(r->trainer, r->val, &ema);
    work_clear(&r->work);
    r->val_bad = setup_report_bad(r->val, r->val_bad,
                                  "unreadable validation image, not evaluated");
    if (rc < 0)
        return rc == DDP_ESTOPPED ? 0 : app_fail(rc);
    r->result = m;
    r->ema = ema;
    r->evaluated = r->last.step;
    r->ema_evaluated = averages ? r->last.step : 0;
    train_print_evaluation(r, t);
    return 0;
}

static void note_start(struct run *r, const struct ddp_progress *p)
{
    if (r->started)
        return;
    r->started = true;
    start_mark("first_step");
    if (train_is_writer(r))
        record_start(&r->record, p->step);
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    note_start(r, p);
    r->last = *p;
    if (p->why && p->skipped <= SKIPS_REPORTED) {
        progress_clear(&r->progress);
        app_say("step %lld skipped: %s", (long long)p->step, p->why);
    }
    progress_step(&r->progress, p);
    train_report_checkpoints(r);
    interrupt_stepped(p->step_seconds);
    return interrupt_wanted();
}

int train_evaluate_if(struct run *r, bool due)
{
    return due && r->val && !train_is_evaluated(r) ? train_evaluate(r) : 0;
}

void train_record_row(struct run *r, bool due)
{
    bool is_new = false;

    if (!due || !r->val || train_is_evaluated(r))
        is_new =
            record_epoch(&r->record, &r->last,
                         r->evaluated == r->last.step ? &r->result : NULL,
                         r->ema_evaluated == r->last.step ? &r->ema : NULL);
    if (is_new) {
        progress_clear(&r->progress);
        train_print_epoch(r);
    }
    board_report(&r->board);
}

/* With --weight-norm, of an epoch that this process has trained. */
static int record_norm(struct run *r)
{
    double norm;
    int rc;

    if (!r->set->weight_norm || !train_is_writer(r) || !r->record.steps.path)
        return 0;
    if ((rc = ddp_chain_norm(r->chain, &norm)) < 0)
        return app_fail(rc);
    record_weights(&r->record, r->last.step, norm);
    board_scalar(&r->board, "weight_norm", r->last.step, norm);
    return 0;
}

/* --log-histograms */
static int record_histograms(struct run *r)
{
    int64_t every = r->set->log_histograms, epoch = r->last.epoch + 1;

    if (!every || epoch % every != 0 || !train_is_writer(r))
        return 0;
    return board_histograms(&r->board, r->chain, r->trainer, r->last.step);
}

int train_record_network(struct run *r)
{
    const struct board *b = &r->board;

    if (r->last.step > 0 || !train_is_writer(r) || !b->log[DDP_LOG_TENSORBOARD])
        return 0;
    board_graph(&r->board, r->chain, r->set->img_size);
    return r->set->log_images ? board_images(&r->board, r->trainer, r->data,
                                             r->set->log_images)
                              : 0;
}

static int on_epoch(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;
    bool due;

    r->last = *p; /* also for an epoch that was completed before a resume */
    progress_flush(&r->progress, &r->last);
    if (interrupt_wanted())
        return 1;
    due = (p->epoch + 1) % r->set->eval_every == 0 || p->step == p->steps;
    if ((r->rc = record_norm(r)) == 0 && (r->rc = record_histograms(r)) == 0)
        r->rc = train_evaluate_if(r, due);
    train_record_row(r, due);
    if (r->rc == 0 && interrupt_wanted())
        return 1;
    return r->rc != 0;
}

/* --eval-steps */
static int on_steps(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    r->last = *p;
    progress_flush(&r->progress, &r->last);
    if (interrupt_wanted())
        return 1;
    r->rc = train_evaluate_if(r, true);
    return r->rc != 0 || interrupt_wanted();
}

void train_callbacks(struct run *r, struct ddp_train_config *cfg)
{
    cfg->on_step = on_step;
    cfg->on_epoch = on_epoch;
    cfg->on_steps = r->set->eval_steps ? on_steps : NULL;
    cfg->stop = should_stop;
    cfg->on_eval_count = on_eval_count;
    cfg->arg = r;
}
