/* checkpoints.c - when a trainer writes checkpoints, and on which thread
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/thread.h"
#include "checkpoint/read.h"
#include "checkpoint/write.h"
#include "engine/ranks.h"
#include "engine/shard.h"
#include "runtime/lost.h"
#include "train/checkpoints.h"
#include "train/sinks.h"
#include "train/snapshot.h"
#include "train/steps.h"

enum { KEEP_LEAST = 2 };

struct ddp__checkpoints {
    struct ddp__ckpt_dir dir;
    int64_t saved;   /* step of the last one written or loaded; -1: none */
    int64_t tried;   /* step of the last attempt to write one; -1: none */
    double saved_at; /* by ddp__now() */
    bool ours;       /* dir has no checkpoints of another run */
    bool requested;  /* by a callback */
    bool writing;    /* thread writes copy */
    pthread_t thread;
    struct ddp__ckpt_copy copy; /* kept: to fill fresh memory takes seven times
                                   as long, and the steps wait for it */
    bool touching;              /* toucher has the kernel clear its pages */
    pthread_t toucher;
    atomic_bool enough; /* it shall end */
    atomic_int rc;      /* of the thread, with its message */
    char message[1024];
    int result; /* of the last attempt; its message is in failures */
    struct ddp_checkpoint_failures failures;
};

/* Rank 0 writes for all. */
static bool is_writer(const struct ddp_trainer *t)
{
    return t->ddp->net.wire.rank == 0;
}

/* ---- memory -------------------------------------------------------------- */

enum { PAGE = 4096 };

/* With what the steps leave of the cores. */
static void *touch_copy(void *arg)
{
    struct ddp__checkpoints *k = arg;
    const struct sched_param none = {0};

    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    for (int i = 0; i < k->copy.sets; i++)
        for (size_t at = 0; at < k->copy.size && !atomic_load(&k->enough);
             at += PAGE)
            ((volatile char *)k->copy.data[i])[at] = 0;
    return NULL;
}

static void end_touching(struct ddp__checkpoints *k)
{
    if (!k->touching)
        return;
    atomic_store(&k->enough, true);
    pthread_join(k->toucher, NULL);
    k->touching = false;
}

/* Without memory, or a thread, it is left to the first checkpoint. */
void ddp__checkpoints_prepare(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;
    struct ddp__error before = ddp__error_save();

    if (!k || !is_writer(t) || k->copy.sets)
        return;
    atomic_store(&k->enough, false);
    if (ddp__ckpt_copy_new(&k->copy, t->engine) < 0)
        ddp__error_restore(&before);
    else
        k->touching = ddp__thread_start(&k->toucher, touch_copy, k) == 0;
}

/* ---- when --------------------------------------------------------------- */

int ddp__checkpoints_new(struct ddp_trainer *t)
{
    const struct ddp_checkpoint_config *c = &t->cfg.checkpoint;
    struct ddp__checkpoints *k;

    if (!c->dir)
        return 0;
    if (!(k = calloc(1, sizeof(*k))) || !(k->dir.path = strdup(c->dir))) {
        free(k);
        return ddp__fail(DDP_ENOMEM, "out of memory for a trainer");
    }
    k->dir.lock.dir = -1;
    k->saved = k->tried = -1;
    k->dir.keep = c->keep < KEEP_LEAST ? KEEP_LEAST : c->keep;
    k->dir.keep_steps = c->keep_epochs * t->loader.steps;
    t->ckpt = k;
    return 0;
}

void ddp__checkpoints_free(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;

    if (!k)
        return;
    ddp__checkpoints_wait(t);
    end_touching(k);
    ddp__ckpt_copy_free(&k->copy);
    ddp__ckpt_unlock(&k->dir.lock);
    free(k->dir.path);
    free(k);
    t->ckpt = NULL;
}

/* A new run in a folder with checkpoints of another run would later resume from
 * those. */
static int open_ours(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;
    int64_t *step, n;
    int rc = is_writer(t) ? ddp__ckpt_dir_open(&k->dir) : 0;

    if (rc < 0 || k->ours || !is_writer(t))
        return rc;
    if ((n = ddp__ckpt_list(k->dir.path, &step)) < 0)
        return (int)n;
    free(step);
    if (n)
        return ddp__fail(DDP_EINVAL,
                         "%s has the checkpoints of another run: resume that "
                         "one with ddp_trainer_resume(), or use another folder",
                         k->dir.path);
    k->ours = true;
    return 0;
}

int ddp__checkpoints_begin(struct ddp_trainer *t)
{
    if (!t->ckpt)
        return 0;
    t->ckpt->saved_at = ddp__now();
    t->ckpt->tried = -1;
    t->ckpt->result = 0;
    return open_ours(t);
}

const char *ddp__checkpoints_folder(const struct ddp_trainer *t)
{
    return t->ckpt ? t->ckpt->dir.path : NULL;
}

int ddp__checkpoints_open(struct ddp_trainer *t)
{
    return is_writer(t) ? ddp__ckpt_dir_open(&t->ckpt->dir) : 0;
}

void ddp__checkpoints_resumed(struct ddp_trainer *t, int64_t step)
{
    t->ckpt->ours = true;
    t->ckpt->saved = step;
}

bool ddp__checkpoints_requested(const struct ddp_trainer *t)
{
    return t->ckpt && t->ckpt->requested;
}

void ddp__checkpoints_request(struct ddp_trainer *t)
{
    if (t->ckpt)
        t->ckpt->requested = true;
}

/* Whether it is time for one by the clock.  Ranks go by that of rank 0, and
 * hear of it at the end of a step. */
static bool is_time(const struct ddp_trainer *t)
{
    double seconds = t->cfg.checkpoint.seconds;

    if (seconds <= 0 || ddp__now() - t->ckpt->saved_at < seconds)
        return false;
    if (!ddp__comm_used(t->engine))
        return true;
    if (is_writer(t))
        ddp__comm_wish(t->engine, DDP__WISH_CHECKPOINT);
    return false;
}

static bool is_multiple(int64_t step, int64_t steps)
{
    return steps && step % steps == 0;
}

/* Whether so many epochs, or a multiple of it, end after a step. */
static bool ends_epochs(const struct ddp_trainer *t, int64_t step,
                        int64_t epochs)
{
    return epochs && ddp__loader_epoch_ends(&t->loader, step) &&
           is_multiple(ddp__loader_place(&t->loader, step - 1).epoch + 1,
                       epochs);
}

bool ddp__checkpoints_due(const struct ddp_trainer *t)
{
    const struct ddp_checkpoint_config *c = &t->cfg.checkpoint;
    const struct ddp__checkpoints *k = t->ckpt;
    int64_t step = t->submitted;

    if (!k || k->requested)
        return k;
    if (step == 0 || step == k->saved || step == k->tried)
        return false;
    return step == t->total || ddp__trainer_is_stale(t) ||
           step == t->run.best || is_multiple(step, c->steps) ||
           ends_epochs(t, step, c->epochs) ||
           is_multiple(step, k->dir.keep_steps) || is_time(t);
}

/* ---- writing ------------------------------------------------------------ */

static void *write_copy(void *arg)
{
    struct ddp__checkpoints *k = arg;
    int rc = ddp__ckpt_write(&k->dir, &k->copy);

    json_decref(k->copy.state);
    k->copy.state = NULL;
    if (rc < 0)
        snprintf(k->message, sizeof(k->message), "%s", ddp_errmsg());
    atomic_store(&k->rc, rc);
    return NULL;
}

/* Note how the last attempt ended. */
static void note_result(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;
    struct ddp_checkpoint_failures *f = &k->failures;

    if ((k->result = atomic_exchange(&k->rc, 0)) == 0) {
        f->in_a_row = 0;
        ddp__sinks_checkpoint(t, k->tried);
        return;
    }
    k->saved = -1;
    f->count++;
    f->in_a_row++;
    f->step = k->tried;
    snprintf(f->why, sizeof(f->why), "%s", k->message);
}

static void join_writer(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;

    if (!k->writing)
        return;
    pthread_join(k->thread, NULL);
    k->writing = false;
    note_result(t);
}

int ddp__checkpoints_wait(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;
    enum ddp_phase before;

    if (!k)
        return 0;
    before = ddp__status_enter(&t->ddp->status, DDP_PHASE_SAVING);
    join_writer(t);
    ddp__status_enter(&t->ddp->status, before);
    return k->result < 0 ? ddp__fail(k->result, "%s", k->failures.why) : 0;
}

int ddp__checkpoints_failed(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;
    int most = t->cfg.checkpoint_failures;

    if (!k)
        return 0;
    if (atomic_load(&k->rc) < 0)
        join_writer(t);
    if (k->result == 0 || most == 0 || k->failures.in_a_row < most)
        return 0;
    ddp__fail(k->result, "%s", k->failures.why);
    if (!ddp__comm_used(t->engine))
        return k->result;
    /* The other ranks hear of it with the next step. */
    ddp__task_group_fail(&t->engine->group, t->submitted, k->result, NULL,
                         NULL);
    return 0;
}

/* Of state that ranks divide, rank 0 gets the others' part. */
static int take_copy(struct ddp_trainer *t)
{
    struct ddp__ckpt_copy *copy = is_writer(t) ? &t->ckpt->copy : NULL;
    int rc;

    end_touching(t->ckpt);
    rc = copy ? ddp__snapshot_take(t, copy) : 0;
    if (!ddp__shard_used(t->engine))
        return rc;
    if ((rc = ddp__ranks_agree(t->ddp, rc)) == 0)
        rc = ddp__ckpt_copy_collect(copy, t->engine);
    if (rc < 0 && copy)
        ddp__ckpt_copy_free(copy);
    return rc;
}

/* An earlier one that could not be written is no reason not to try. */
static int save_state(struct ddp_trainer *t)
{
    struct ddp__checkpoints *k = t->ckpt;
    int rc;

    join_writer(t);
    k->requested = false;
    ddp__comm_unwish(t->engine, DDP__WISH_CHECKPOINT);
    if (k->saved == t->submitted)
        return 0;
    if ((rc = take_copy(t)) < 0)
        return rc;
    k->saved = k->tried = t->submitted;
    k->saved_at = ddp__now();
    if (!is_writer(t))
        return 0;
    k->writing = true;
    if (ddp__thread_start(&k->thread, write_copy, k) == 0)
        return 0;
    k->writing = false; /* no thread could be started: write on this one */
    write_copy(k);
    note_result(t);
    return 0;
}

int ddp__checkpoints_save(struct ddp_trainer *t)
{
    enum ddp_phase before =
        ddp__status_enter(&t->ddp->status, DDP_PHASE_SAVING);
    int rc = save_state(t);

    ddp__status_enter(&t->ddp->status, before);
    return rc;
}

/* One of these very steps that could not be written is not tried again, and
 * without steps there is nothing to keep. */
static bool has_work(const struct ddp_trainer *t)
{
    const struct ddp__checkpoints *k = t->ckpt;

    return k && is_writer(t) && k->ours && !t->diverged &&
           t->submitted > t->begun && k->tried != t->submitted;
}

int ddp__checkpoints_rescue(struct ddp_trainer *t, int rc)
{
    struct ddp__error why = ddp__error_save();
    int saved;

    if (!has_work(t))
        return rc;
    if (ddp__lost_any())
        return ddp__fail(rc,
                         "%s; no checkpoint of the steps so far: weights and "
                         "state are lost with it",
                         why.message);
    if (ddp__shard_used(t->engine)) /* other ranks may not be there to help */
        return ddp__fail(rc,
                         "%s; no checkpoint of the steps so far: ranks divide "
                         "the optimizer's state",
                         why.message);
    if ((saved = ddp_trainer_wait(t)) == 0 &&
        (saved = ddp__checkpoints_save(t)) == 0)
        saved = ddp__checkpoints_wait(t);
    if (saved == 0)
        return ddp__fail(rc,
                         "%s; the checkpoint of step %lld has all steps "
                         "that were made",
                         why.message, (long long)t->submitted);
    if (t->engine->torn)
        return ddp__fail(rc, "%s; no checkpoint is written of them",
                         why.message);
    return ddp__fail(rc, "%s; no checkpoint of the steps so far: %s",
                     why.message, ddp_errmsg());
}

int ddp_trainer_checkpoint_failures(const ddp_trainer_t *t,
                                    struct ddp_checkpoint_failures *f)
{
    if (!t)
        return ddp__fail_null("trainer");
    *f = t->ckpt ? t->ckpt->failures : (struct ddp_checkpoint_failures){0};
    return 0;
}

int ddp_trainer_checkpoint(ddp_trainer_t *t)
{
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    if (!t->ckpt)
        return ddp__fail(DDP_EINVAL, "the trainer has no checkpoint.dir");
    if (t->training) {
        if (ddp__comm_used(t->engine))
            ddp__comm_wish(t->engine, DDP__WISH_CHECKPOINT);
        else
            t->ckpt->requested = true;
        return 0;
    }
    if ((rc = ddp_trainer_wait(t)) < 0 || (rc = open_ours(t)) < 0)
        return rc;
    if (t->diverged)
        return ddp__fail(DDP_EDIVERGED,
                         "no checkpoint is written: the loss is not finite");
    rc = ddp__checkpoints_save(t);
    return rc < 0 ? rc : ddp__checkpoints_wait(t);
}
