/* find_lr.c - "imagenet train --find-lr": a learning rate to begin with
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Smith 2017, "Cyclical learning rates", the range test; limits,
 *          smoothing and choice as in PyTorch Lightning's lr_find().
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "common/interrupt.h"
#include "chart.h"
#include "find_lr.h"
#include "output.h"
#include "progress.h"
#include "report_plot.h"

/* The first losses are of weights that nothing has changed. */
enum { LEFT_OUT = 10 };

static const double lowest = 1e-8, highest = 10, memory = 0.98, explosion = 4;

struct finder {
    int64_t steps; /* at most */
    double *lr;    /* all of `count`, owned */
    double *loss, *smooth;
    int count;
    double mean, best; /* of the losses; the least smooth one */
    struct work work;
};

static double rate_at(int64_t step, double epoch, double epochs, void *arg)
{
    const struct finder *f = arg;

    (void)epoch;
    (void)epochs;
    return lowest *
           pow(highest / lowest, (double)step / (double)(f->steps - 1));
}

/* Whether the loss has exploded. */
static bool note(struct finder *f, double lr, double loss)
{
    int n = f->count;
    double smooth;

    if (!isfinite(loss))
        return true;
    f->mean = memory * f->mean + (1 - memory) * loss;
    smooth = f->mean / (1 - pow(memory, n + 1));
    f->lr[n] = lr;
    f->loss[n] = loss;
    f->smooth[n] = smooth;
    f->count++;
    if (n == 0 || smooth < f->best)
        f->best = smooth;
    return n > LEFT_OUT && smooth > explosion * f->best;
}

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct finder *f = arg;

    work_count(p->step, f->steps, &f->work);
    return note(f, p->lr, p->now.loss) || interrupt_wanted();
}

/* Where the smooth loss falls most from one step to the one after the next; -1:
 * there are too few. */
static int steepest(const struct finder *f)
{
    int best = -1;
    double least = HUGE_VAL;

    for (int i = LEFT_OUT + 1; i + 2 < f->count; i++) {
        double slope = f->smooth[i + 1] - f->smooth[i - 1];

        if (slope < least) {
            least = slope;
            best = i;
        }
    }
    return best;
}

/* ---- showing ------------------------------------------------------------ */

static void draw(const struct finder *f)
{
    struct chart *c = calloc(1, sizeof(*c));
    double *x = calloc((size_t)f->count + 1, sizeof(*x));

    for (int i = 0; x && i < f->count; i++)
        x[i] = log10(f->lr[i]);
    if (c && x) {
        c->title = "loss";
        c->unit = "";
        c->x_name = "log10 of the learning rate";
        chart_add(
            c, &(struct chart_series){
                   .x = x, .y = f->smooth, .n = f->count, .label = "smoothed"});
        report_plot_chart(c, stdout);
    }
    free(x);
    free(c);
}

static void write_table(const void *arg, FILE *to)
{
    const struct finder *f = arg;

    fprintf(to, "lr,loss,smoothed\n");
    for (int i = 0; i < f->count; i++)
        fprintf(to, "%.9g,%.9g,%.9g\n", f->lr[i], f->loss[i], f->smooth[i]);
}

static int show(const struct settings *s, const struct finder *f)
{
    int best = steepest(f), rc = OPTS_GO;

    if (s->output && (rc = app_make_dir(s->output)) == 0)
        rc = output_write(s->output, "lr_find.csv", write_table, f);
    if (rc != OPTS_GO)
        return rc;
    if (best < 0) {
        app_say("only %d of %lld steps until the loss exploded: use more "
                "--find-lr-steps",
                f->count, (long long)f->steps);
        return EXIT_FAILURE;
    }
    draw(f);
    printf("find_lr steps=%d lr=%.3g loss=%.4f\n", f->count, f->lr[best],
           f->smooth[best]);
    return 0;
}

/* ---- the run ------------------------------------------------------------ */

static int train(struct finder *f, ddp_t *ddp, ddp_chain_t *c,
                 ddp_dataset_t *data, struct ddp_train_config *cfg)
{
    ddp_trainer_t *t;
    int rc;

    cfg->steps = f->steps;
    cfg->max_nan_steps = (int)f->steps;
    cfg->ema_decay = 0;
    cfg->optimizer.lr = 1;
    cfg->schedule = (struct ddp_schedule){
        .kind = DDP_CUSTOM_SCHEDULE, .fn = rate_at, .arg = f};
    cfg->on_step = on_step;
    cfg->arg = f;
    work_begin(&f->work, "find-lr", false);
    f->work.unit = "steps";
    t = ddp_trainer_new(ddp, c, data, cfg);
    rc = t ? ddp_trainer_train(t) : ddp_errcode();
    work_clear(&f->work);
    ddp_trainer_free(t);
    if (rc == DDP_ESTOPPED)
        return interrupt_wanted() ? EXIT_AGAIN : OPTS_GO;
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

int find_lr(const struct settings *s, ddp_t *ddp, ddp_chain_t *c,
            ddp_dataset_t *data, struct ddp_train_config *cfg, bool writes)
{
    struct finder f = {.steps = s->find_lr_steps};
    size_t n = (size_t)f.steps;
    int rc;

    f.lr = calloc(n, sizeof(*f.lr));
    f.loss = calloc(n, sizeof(*f.loss));
    f.smooth = calloc(n, sizeof(*f.smooth));
    rc = f.lr && f.loss && f.smooth ? train(&f, ddp, c, data, cfg)
                                    : app_exit_code(DDP_ENOMEM);
    if (rc == OPTS_GO)
        rc = writes ? show(s, &f) : 0;
    free(f.lr);
    free(f.loss);
    free(f.smooth);
    return rc;
}
