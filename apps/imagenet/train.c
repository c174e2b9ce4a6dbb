/* train.c - "imagenet train": train, evaluate, save
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_command.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "common/app_rank.h"
#include "common/interrupt.h"
#include "common/opt_file.h"
#include "abort.h"
#include "board.h"
#include "board_network.h"
#include "checkpoint.h"
#include "class_subset.h"
#include "class_weights.h"
#include "find_lr.h"
#include "image_cache.h"
#include "names.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "recipe.h"
#include "record.h"
#include "run_file.h"
#include "setup.h"
#include "step_graph.h"
#include "teacher.h"
#include "train.h"
#include "train_lines.h"
#include "train_run.h"
#include "weights.h"
#include "weights_settings.h"

/* So many skipped steps are reported one by one. */
enum { SKIPS_REPORTED = 10 };

/* Jordan's, of --whiten. */
#define WHITEN_EPS 5e-4

/* ---- the folder of the run ---------------------------------------------- */

/* Rank 0 writes for all. */
static bool is_writer(const struct run *r)
{
    return ddp_rank(r->ddp) == 0;
}

static void write_config(const void *run, FILE *f)
{
    opts_save(((const struct run *)run)->opts, f);
}

static void write_classes(const void *run, FILE *f)
{
    names_print(((const struct run *)run)->data, f);
}

/* Rank 0 makes the folder that is not given, which all ranks use. */
static int make_output(struct run *r)
{
    char name[512] = "";
    int rc =
        is_writer(r) ? output_new(r->set->model, &r->set->output) : OPTS_GO;
    int sent;

    if (rc == OPTS_GO && r->set->output)
        snprintf(name, sizeof(name), "%s", r->set->output);
    if ((sent = ddp_bcast(r->ddp, name, sizeof(name), 0)) < 0)
        return app_fail(sent);
    if (rc != OPTS_GO || is_writer(r))
        return rc;
    if (!*name)
        return EXIT_WRITE; /* rank 0 says why */
    r->set->output = strdup(name);
    return r->set->output ? OPTS_GO : app_exit_code(DDP_ENOMEM);
}

static int name_output(struct run *r)
{
    int rc = r->set->output ? OPTS_GO : make_output(r);

    if (rc == OPTS_GO && !(r->ckpt = app_path(r->set->output, CHECKPOINT_DIR)))
        rc = app_exit_code(DDP_ENOMEM);
    return rc;
}

static int begin_file(struct run *r, bool resumed)
{
    const struct run_facts facts = {
        .opts = r->opts,
        .ddp = r->ddp,
        .trainer = r->trainer,
        .data = r->data,
        .val = r->val,
        .chain = r->chain,
        .resumed = resumed,
    };

    return run_file_begin(&r->file, r->set->output, &facts);
}

/* By --patience. */
static bool ended_early(const struct run *r)
{
    return r->set->patience && r->last.step < r->last.steps;
}

static const char *finished(const struct run *r)
{
    return ended_early(r) ? "no better evaluation: --patience" : "complete";
}

static void end_file(struct run *r, int code)
{
    const char *why = code == 0             ? finished(r)
                      : code == EXIT_AGAIN  ? interrupt_reason()
                      : *r->record.why != 0 ? r->record.why
                                            : ddp_errmsg();

    run_file_end(&r->file, code, why, ddp_trainer_steps(r->trainer),
                 r->weights);
}

/* The settings of the run in a folder are replaced only when that run is
 * resumed. */
static int prepare_output(struct run *r)
{
    struct ddp_checkpoint c;
    int rc = is_writer(r) ? app_make_dir(r->set->output) : 0;

    if (rc || (rc = checkpoint_resume(r->opts, r->set, r->ckpt, r->trainer,
                                      &c)) != OPTS_GO)
        return rc;
    r->last.step = c.step;
    r->last.epoch_mean = c.epoch_mean;
    r->evaluated = c.evaluated;
    r->result = c.evaluation;
    r->ema_evaluated = c.ema_evaluated;
    r->ema = c.ema_evaluation;
    if (!is_writer(r))
        return OPTS_GO;
    rc = output_write(r->set->output, "config.txt", write_config, r);
    if (rc == OPTS_GO)
        rc = output_write(r->set->output, "classes.txt", write_classes, r);
    if (rc == OPTS_GO)
        rc = record_open(&r->record, r->set->output, r->trainer, &c);
    return rc == OPTS_GO ? begin_file(r, c.step > 0) : rc;
}

/* A run that is stopped leaves a checkpoint to resume from. */
static int save_checkpoint(struct run *r)
{
    int rc = ddp_trainer_checkpoint(r->trainer);

    return rc < 0 ? app_fail(rc) : 0;
}

static int save_chain(const struct run *r, const char *path)
{
    return ddp_chain_save(r->chain, path, NULL);
}

static int save_ema(const struct run *r, const char *path)
{
    return ddp_trainer_ema_save(r->trainer, path, NULL);
}

static int save_as(struct run *r, const char *name,
                   int (*save)(const struct run *r, const char *path))
{
    char *path = app_path(r->set->output, "%s", name);
    int rc = path ? save(r, path) : DDP_ENOMEM;

    progress_clear(&r->progress);
    if (rc < 0)
        rc = app_fail(rc);
    else
        app_print("saved %s\n", path);
    free(path);
    return rc;
}

/* The result of a run that is complete. */
static int save_weights(struct run *r)
{
    int rc = is_writer(r) ? save_as(r, WEIGHTS, save_chain) : 0;

    if (rc == 0)
        r->weights = WEIGHTS;
    if (is_writer(r) && rc == 0 && r->set->ema_decay > 0)
        rc = save_as(r, "weights-ema.safetensors", save_ema);
    return rc;
}

/* ---- while it runs ------------------------------------------------------ */

static int should_stop(void *arg)
{
    (void)arg;
    return interrupt_wanted();
}

static bool is_evaluated(const struct run *r)
{
    return r->evaluated == r->last.step &&
           (r->set->ema_decay == 0 || r->ema_evaluated == r->last.step);
}

static void on_eval_count(int64_t done, int64_t count, void *arg)
{
    work_count(done, count, &((struct run *)arg)->work);
}

/* An interrupted evaluation is discarded. */
static int evaluate(struct run *r)
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

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

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

/* Not again if the checkpoint holds the evaluation of this step. */
static int evaluate_if(struct run *r, bool due)
{
    return due && r->val && !is_evaluated(r) ? evaluate(r) : 0;
}

/* The row of the last epoch, once it is evaluated if that is due. */
static void record_row(struct run *r, bool due)
{
    bool is_new = false;

    if (!due || !r->val || is_evaluated(r))
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

    if (!r->set->weight_norm || !is_writer(r) || !r->record.steps.path)
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

    if (!every || epoch % every != 0 || !is_writer(r))
        return 0;
    return board_histograms(&r->board, r->chain, r->trainer, r->last.step);
}

/* What the logs show of a run that begins. */
static int record_network(struct run *r)
{
    const struct board *b = &r->board;

    if (r->last.step > 0 || !is_writer(r) || !b->log[DDP_LOG_TENSORBOARD])
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
        r->rc = evaluate_if(r, due);
    record_row(r, due);
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
    r->rc = evaluate_if(r, true);
    return r->rc != 0 || interrupt_wanted();
}

/* ---- before and after --------------------------------------------------- */

static int open_data(struct run *r)
{
    struct settings *s = r->set;
    int classes, rc;

    rc = s->val_split > 0 ? setup_part(r->opts, s, DDP_TRAIN, &r->data)
                          : setup_data(r->opts, s, DDP_TRAIN, &r->data);
    if (rc != OPTS_GO ||
        (rc = class_subset_choose(r->opts, s, &r->data)) != OPTS_GO)
        return rc;
    classes = ddp_dataset_classes(r->data);
    if (ddp_dataset_target_len(r->data) && s->loss == LOSS_CE) {
        app_say("%s: use --loss bce, which takes each class for itself",
                ddp_dataset_describe(r->data));
        return EXIT_USAGE;
    }
    if (!s->classes)
        s->classes = classes;
    if (s->classes < classes) {
        app_say("--num-classes %lld is less than the %d classes of the data",
                (long long)s->classes, classes);
        return EXIT_USAGE;
    }
    s->resize = ddp_dataset_resize(r->data);
    return s->no_val ? OPTS_GO : setup_val(r->opts, s, r->data, &r->val);
}

/* The first steps make plans and touch memory. */
enum { TRACE_FIRST = 3 };

static int configure_trace(struct run *r, struct ddp_train_config *cfg)
{
    const struct settings *s = r->set;
    int rank = ddp_rank(r->ddp);

    if (s->trace) {
        r->trace = rank ? app_path(s->output, "trace-rank-%d.json", rank)
                        : app_path(s->output, "trace.json");
        if (!r->trace)
            return app_exit_code(DDP_ENOMEM);
    }
    if (s->graph && is_writer(r) && !(r->graph = step_graph_dot(s->graph)))
        return app_exit_code(DDP_ENOMEM);
    cfg->trace = r->trace;
    cfg->graph = r->graph;
    cfg->trace_first = TRACE_FIRST;
    cfg->trace_steps = s->trace;
    return OPTS_GO;
}

static int configure_groups(struct run *r, struct ddp_train_config *cfg)
{
    int rc = groups_make(r->opts, r->set, r->chain, &r->groups);

    recipe_config(r->opts, r->set, cfg);
    cfg->groups = r->groups.group;
    cfg->group_count = r->groups.count;
    return rc;
}

static int configure_weights(struct run *r, struct ddp_train_config *cfg)
{
    const struct settings *s = r->set;
    int classes = ddp_dataset_classes(r->data), rc = OPTS_GO;

    if (s->class_weights)
        rc = class_weights_make(s->class_weights, r->data, &r->class_weights);
    if (rc == OPTS_GO && s->pos_weight)
        rc = pos_weight_make(s->pos_weight, r->data, &r->pos_weight);
    cfg->class_weights = r->class_weights;
    cfg->class_weight_count = r->class_weights ? classes : 0;
    cfg->pos_weight = r->pos_weight;
    cfg->pos_weight_count = r->pos_weight ? classes : 0;
    return rc;
}

/* With the weights that it begins with, and how it is trained. */
static int make_network(struct run *r, struct ddp_train_config *cfg)
{
    int rc = setup_network(r->set, &r->chain);

    if (rc == OPTS_GO && r->set->weights)
        rc = weights_load(r->set, r->chain, true);
    if (rc != OPTS_GO)
        return rc;
    if (r->set->whiten > 0 &&
        (rc = ddp_chain_whiten(r->chain, r->data, r->set->whiten, WHITEN_EPS)) <
            0)
        return app_fail(rc);
    if ((rc = weights_settings_add(r->opts, r->chain, r->data)) < 0)
        return app_fail(rc);
    rc = configure_groups(r, cfg);
    if (rc == OPTS_GO)
        rc = configure_weights(r, cfg);
    if (rc == OPTS_GO && r->set->teacher)
        rc = teacher_make(r->opts, r->set, &r->teacher);
    cfg->teacher = r->teacher;
    return rc;
}

static int find_rate(struct run *r)
{
    struct ddp_train_config cfg;
    int rc = make_network(r, &cfg);

    return rc == OPTS_GO
               ? find_lr(r->set, r->ddp, r->chain, r->data, &cfg, is_writer(r))
               : rc;
}

static int make_trainer(struct run *r)
{
    struct ddp_sink sinks[1 + DDP_LOG_KINDS] = {record_sink(&r->record)};
    struct ddp_train_config cfg;
    int rc = make_network(r, &cfg);

    if (rc != OPTS_GO)
        return rc;
    cfg.eval_data = r->val;
    cfg.on_step = on_step;
    cfg.on_epoch = on_epoch;
    cfg.on_steps = r->set->eval_steps ? on_steps : NULL;
    cfg.keep_gradients = r->set->log_histograms > 0;
    cfg.stop = should_stop;
    cfg.on_eval_count = on_eval_count;
    cfg.arg = r;
    cfg.sinks = sinks;
    cfg.sink_count = is_writer(r) ? 1 + board_sinks(&r->board, sinks + 1) : 0;
    checkpoint_config(r->set, r->ckpt, &cfg);
    if ((rc = configure_trace(r, &cfg)) != OPTS_GO)
        return rc;
    if (!(r->trainer = ddp_trainer_new(r->ddp, r->chain, r->data, &cfg)))
        return app_fail(ddp_errcode());
    return OPTS_GO;
}

/* --dry-run: what make_trainer() would use, without memory for it. */
static int print_run(struct run *r)
{
    struct ddp_train_config cfg;
    int rc = setup_network(r->set, &r->chain);

    if (rc != OPTS_GO)
        return rc;
    if ((rc = configure_groups(r, &cfg)) != OPTS_GO)
        return rc;
    if ((rc = ddp_train_config_resolve(&cfg, r->ddp, r->data)) < 0)
        return app_fail(rc);
    opts_save(r->opts, stdout);
    return 0;
}

/* Another rank may be the reason for a signal, and have died on another host.
 * One that lives is heard of twice a second. */
static void hurry(void *ddp)
{
    ddp_ranks_hurry(ddp, 4);
}

static int prepare_run(struct run *r)
{
    struct settings *s = r->set;
    int rc;

    if ((rc = setup_check_model(r->opts, s)) != OPTS_GO ||
        (rc = recipe_check(r->opts, s)) != OPTS_GO ||
        (rc = checkpoint_check(r->opts, s)) != OPTS_GO ||
        (rc = board_check(r->opts, s)) != OPTS_GO ||
        (rc = weights_check(r->opts, s)) != OPTS_GO ||
        (rc = open_data(r)) != OPTS_GO ||
        (rc = setup_devices(s, &r->ddp)) != OPTS_GO)
        return rc;
    interrupt_catch((unsigned)r->set->grace, hurry, r->ddp);
    if ((rc = recipe_resolve(r->opts, s, r->ddp, r->data)) != OPTS_GO)
        return rc;
    if (s->dry_run)
        return print_run(r);
    if (s->find_lr)
        return find_rate(r);
    if ((rc = name_output(r)) != OPTS_GO ||
        (rc = board_open(r->opts, s, &r->board)) != OPTS_GO ||
        (rc = make_trainer(r)) != OPTS_GO)
        return rc;
    return prepare_output(r);
}

/* The run may have been stopped during the evaluation after an epoch. */
static int evaluate_stopped(struct run *r)
{
    int64_t steps = ddp_trainer_epoch_steps(r->trainer);
    int64_t done = r->last.step, epochs = done / steps;
    int64_t every = r->set->eval_steps;
    bool due = done && done % steps == 0 && epochs % r->set->eval_every == 0;
    int rc = evaluate_if(r, due || (done && every && done % every == 0));

    r->last.epoch = epochs - 1;
    if (due)
        record_row(r, due);
    return rc;
}

/* After a failure in a callback, between two steps.  Returns its exit code. */
static int keep_work(struct run *r)
{
    if (save_checkpoint(r) == 0)
        app_say("the checkpoint of step %lld has all steps that were made",
                (long long)ddp_trainer_steps(r->trainer));
    return r->rc;
}

/* Long, because what is saved and printed depends on how training ended: at the
 * end of the run, by an interruption, or by a failure. */
static int train(struct run *r)
{
    int rc = evaluate_stopped(r), drawn = 0;
    bool early;

    if (rc)
        return rc;
    if ((rc = record_network(r)))
        return rc;
    rc = ddp_trainer_train(r->trainer);
    early = rc == DDP_ESTOPPED;

    /* Steps in flight when a callback stopped the run are completed as well. */
    if (rc == DDP_ESTOPPED)
        r->last.step = ddp_trainer_steps(r->trainer);
    progress_flush(&r->progress, &r->last);
    progress_clear(&r->progress);
    train_report_bad(r->data);
    setup_report_retries(r->val);
    setup_report_storage();
    image_cache_report();
    train_report_skips(r->trainer);
    if (r->rc)
        return keep_work(r);
    if (rc < 0 && !early)
        return app_fail(rc);
    train_report_checkpoints(r);
    if (!early && r->val && !is_evaluated(r)) {
        if ((rc = evaluate(r)))
            return rc;
        early = !is_evaluated(r);
    }
    rc = early ? save_checkpoint(r) : save_weights(r);
    if (rc == 0 && !early && r->graph)
        drawn = step_graph_draw(r->set->graph, r->graph);
    if (rc || (rc = train_print_final(r)))
        return rc;
    if (!early && ended_early(r))
        app_say("ended after step %lld of %lld: %lld evaluations in a row were "
                "not better than the best",
                (long long)r->last.step, (long long)r->last.steps,
                (long long)r->set->patience);
    if (early)
        app_say("interrupted by %s after step %lld; checkpoint saved",
                interrupt_reason(), (long long)r->last.step);
    return early ? EXIT_AGAIN : drawn;
}

/* A first guess at how long saving takes: a slow disk's 20 MB/s. */
static double save_seconds(const struct run *r)
{
    return 4e-6 / 20 * (double)setup_params(r->chain);
}

/* The log begins with the command and the time. */
static void begin_log(void)
{
    char *command = app_command_line(), clock[32] = "", *line;
    time_t now = time(NULL);
    struct tm tm;

    app_log_begin();
    if (gmtime_r(&now, &tm))
        strftime(clock, sizeof(clock), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (asprintf(&line, "# %s %s", clock, command ? command : "") >= 0) {
        app_log(line);
        free(line);
    }
    free(command);
}

int train_run(struct opts *o, struct settings *s)
{
    struct run r = {.opts = o, .set = s};
    int rc;

    begin_log();
    rc = prepare_run(&r);
    if (rc == OPTS_GO) {
        abort_notes(r.ckpt);
        train_announce(&r);
        interrupt_limit(s->time_limit, save_seconds(&r));
        progress_begin(&r.progress, s->log_every,
                       ddp_trainer_epoch_steps(r.trainer),
                       s->verbose || s->quiet);
        rc = train(&r);
        if (app_rank() == 0 &&
            (rc == EXIT_WRITE || rc == EXIT_DATA || rc == EXIT_MEMORY))
            checkpoint_advise(r.ckpt);
    }
    if (r.ddp && ddp_rank_count(r.ddp) > 1)
        interrupt_finish();
    end_file(&r, rc);
    board_report(&r.board);
    ddp_trainer_free(r.trainer);
    board_close(&r.board);
    record_close(&r.record);
    ddp_dataset_free(r.val);
    ddp_dataset_free(r.data);
    ddp_chain_free(r.chain);
    ddp_chain_free(r.teacher);
    ddp_finish(r.ddp);
    groups_free(&r.groups);
    free(r.class_weights);
    free(r.pos_weight);
    free(r.trace);
    free(r.graph);
    free(r.ckpt);
    return rc;
}
