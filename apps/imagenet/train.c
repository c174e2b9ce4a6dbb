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
#include "common/start_clock.h"
#include "abort.h"
#include "board.h"
#include "checkpoint.h"
#include "image_cache.h"
#include "options.h"
#include "progress.h"
#include "recipe.h"
#include "record.h"
#include "setup.h"
#include "setup_data.h"
#include "setup_network.h"
#include "step_graph.h"
#include "train.h"
#include "train_events.h"
#include "train_folder.h"
#include "train_lines.h"
#include "train_make.h"
#include "weights.h"

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
        (rc = train_open_data(r)) != OPTS_GO)
        return rc;
    start_mark("data");
    if ((rc = setup_devices(s, &r->ddp)) != OPTS_GO)
        return rc;
    start_mark("devices");
    interrupt_catch((unsigned)r->set->grace, hurry, r->ddp);
    if ((rc = recipe_resolve(r->opts, s, r->ddp, r->data)) != OPTS_GO)
        return rc;
    if (s->dry_run)
        return train_print_options(r);
    if (s->find_lr)
        return train_find_rate(r);
    if ((rc = train_name_folder(r)) != OPTS_GO ||
        (rc = board_open(r->opts, s, &r->board)) != OPTS_GO ||
        (rc = train_make_trainer(r)) != OPTS_GO)
        return rc;
    start_mark("plans");
    rc = train_begin_folder(r);
    start_mark("folder");
    return rc;
}

/* The run may have been stopped during the evaluation after an epoch. */
static int evaluate_stopped(struct run *r)
{
    int64_t steps = ddp_trainer_epoch_steps(r->trainer);
    int64_t done = r->last.step, epochs = done / steps;
    int64_t every = r->set->eval_steps;
    bool due = done && done % steps == 0 && epochs % r->set->eval_every == 0;
    int rc = train_evaluate_if(r, due || (done && every && done % every == 0));

    r->last.epoch = epochs - 1;
    if (due)
        train_record_row(r, due);
    return rc;
}

/* After a failure in a callback, between two steps.  Returns its exit code. */
static int keep_work(struct run *r)
{
    if (train_save_checkpoint(r) == 0)
        app_say("the checkpoint of step %lld has all steps that were made",
                (long long)ddp_trainer_steps(r->trainer));
    return r->rc;
}

static void report_faults(const struct run *r)
{
    train_report_bad(r->data);
    setup_report_retries(r->val);
    setup_report_storage();
    image_cache_report();
    train_report_skips(r->trainer);
}

static int end_interrupted(struct run *r)
{
    int rc = train_save_checkpoint(r);

    if (rc || (rc = train_print_final(r)))
        return rc;
    app_say("interrupted by %s after step %lld; checkpoint saved",
            interrupt_reason(), (long long)r->last.step);
    return EXIT_AGAIN;
}

static int end_complete(struct run *r)
{
    int rc = train_save_weights(r), drawn = 0;

    if (rc == 0 && r->graph)
        drawn = step_graph_draw(r->set->graph, r->graph);
    if (rc || (rc = train_print_final(r)))
        return rc;
    if (train_ended_early(r))
        app_say("ended after step %lld of %lld: %lld evaluations in a row were "
                "not better than the best",
                (long long)r->last.step, (long long)r->last.steps,
                (long long)r->set->patience);
    return drawn;
}

/* A run ends when it is complete, by an interruption, also of its last
 * evaluation, or by a failure. */
static int train(struct run *r)
{
    int rc = evaluate_stopped(r);
    bool interrupted;

    if (rc || (rc = train_record_network(r)))
        return rc;
    start_mark("records");
    rc = ddp_trainer_train(r->trainer);
    interrupted = rc == DDP_ESTOPPED;

    /* Steps in flight when a callback stopped the run are completed as well. */
    if (interrupted)
        r->last.step = ddp_trainer_steps(r->trainer);
    progress_flush(&r->progress, &r->last);
    progress_clear(&r->progress);
    report_faults(r);
    if (r->rc)
        return keep_work(r);
    if (rc < 0 && !interrupted)
        return app_fail(rc);
    train_report_checkpoints(r);
    if (!interrupted) {
        if ((rc = train_evaluate_if(r, true)))
            return rc;
        interrupted = r->val && !train_is_evaluated(r);
    }
    return interrupted ? end_interrupted(r) : end_complete(r);
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

static void free_run(struct run *r)
{
    ddp_trainer_free(r->trainer);
    board_close(&r->board);
    record_close(&r->record);
    ddp_dataset_free(r->val);
    ddp_dataset_free(r->data);
    ddp_chain_free(r->chain);
    ddp_chain_free(r->teacher);
    ddp_finish(r->ddp);
    groups_free(&r->groups);
    free(r->class_weights);
    free(r->pos_weight);
    free(r->trace);
    free(r->graph);
    free(r->ckpt);
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
    if (rc == EXIT_PEER && ddp_errcode() == DDP_EDEVICE && r.ckpt)
        checkpoint_name_newest(r.ckpt, r.last.step);
    if (r.ddp && ddp_rank_count(r.ddp) > 1)
        interrupt_finish();
    train_end_folder(&r, rc);
    board_report(&r.board);
    free_run(&r);
    return rc;
}
