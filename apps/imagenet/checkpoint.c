/* checkpoint.c - checkpoints of a run: when they are written, and resuming
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "common/app_log.h"
#include "common/app_words.h"
#include "changes.h"
#include "checkpoint.h"
#include "options.h"

/* ---- when: 10m, 500it, 1ep, none ---------------------------------------- */

static bool parse_interval(const char *text, struct ddp_checkpoint_config *c)
{
    char *unit;
    double n = strtod(text, &unit);

    *c = (struct ddp_checkpoint_config){0};
    if (!strcmp(text, "none"))
        return true;
    if (unit == text || !isfinite(n) || n <= 0 || n > 1e15)
        return false;
    if (!strcmp(unit, "s") || !*unit)
        c->seconds = n;
    else if (!strcmp(unit, "m"))
        c->seconds = 60 * n;
    else if (!strcmp(unit, "h"))
        c->seconds = 3600 * n;
    else if (!strcmp(unit, "it") && n == floor(n))
        c->steps = (int64_t)n;
    else if (!strcmp(unit, "ep") && n == floor(n) && n <= 1e9)
        c->epochs = (int64_t)n;
    else
        return false;
    return true;
}

int checkpoint_check(const struct opts *o, const struct settings *s)
{
    struct ddp_checkpoint_config c;
    char allowed[1024];

    if (parse_interval(s->ckpt_every, &c))
        return changes_allowed(o, s, allowed, sizeof(allowed));
    opt_complain(o,
                 "--ckpt-every: '%s' is not an interval such as 90s, 10m, 2h, "
                 "500it, 1ep, or none",
                 s->ckpt_every);
    return EXIT_USAGE;
}

void checkpoint_config(const struct settings *s, const char *dir,
                       struct ddp_train_config *cfg)
{
    struct ddp_checkpoint_config *c = &cfg->checkpoint;

    parse_interval(s->ckpt_every, c);
    c->dir = dir;
    c->keep = (int)s->keep_last;
    c->keep_epochs = s->save_every;
    cfg->checkpoint_failures = (int)s->ckpt_failures;
}

/* ---- that could not be written ------------------------------------------ */

void checkpoint_report_failure(const struct ddp_checkpoint_failures *f)
{
    app_say("the checkpoint of step %lld could not be written: %s",
            (long long)f->step, f->why);
    if (f->in_a_row)
        app_say("the run continues and tries again when the next checkpoint is "
                "due; %lld in a row have failed",
                (long long)f->in_a_row);
}

/* ---- resuming ----------------------------------------------------------- */

/* Whether the folder of a run has checkpoints. */
static bool has_checkpoints(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    bool found = false;

    while (d && !found && (e = readdir(d)))
        found = !strncmp(e->d_name, "step-", 5);
    if (d)
        closedir(d);
    return found;
}

void checkpoint_advise(const char *dir)
{
    if (has_checkpoints(dir))
        app_say("%s is intact: when the cause is removed, run the same command "
                "again to resume from its newest checkpoint",
                dir);
    else
        app_say("no checkpoint was written yet: when the cause is removed, run "
                "the same command again to start over");
}

void checkpoint_name_newest(const char *dir, int64_t done)
{
    char *link = app_path(dir, "latest"), name[256], lost[64] = "";
    ssize_t len = link ? readlink(link, name, sizeof(name) - 1) : -1;
    long long step = 0;

    if (len > 0) {
        name[len] = '\0';
        sscanf(name, "step-%lld", &step);
    }
    if (done > step)
        snprintf(lost, sizeof(lost), ", and repeats %lld steps",
                 (long long)done - step);
    if (len > 0)
        app_say("the newest checkpoint is %s/%s: the same command resumes from "
                "it, on the devices that are left%s",
                dir, name, lost);
    else
        app_say("no checkpoint was written yet: the same command starts over, "
                "on the devices that are left%s",
                lost);
    free(link);
}

/* Other settings, or a folder that cannot be used. */
static int refuse_resume(const struct opts *o, const struct settings *s,
                         const struct ddp_checkpoint *c)
{
    char with[256];

    app_fail(DDP_EINVAL);
    changes_wanted(o, c->changed, with, sizeof(with));
    if (*with)
        app_say("to continue with the new values, as a run with other bits, "
                "add --resume-with %s",
                with);
    else if (s->resume_with && !strcmp(s->resume, "auto"))
        app_say("to continue this run in another folder, add --resume %s and "
                "use another --output",
                s->output);
    app_say("to start a new run, use --resume none and another --output");
    return EXIT_USAGE;
}

static int report_resume(const struct opts *o, const struct settings *s, int rc,
                         const char *from, const struct ddp_checkpoint *c)
{
    char changes[sizeof(c->changes) + 256];

    if (rc == DDP_EINVAL)
        return refuse_resume(o, s, c);
    if (rc < 0)
        return app_fail(rc);
    if (c->skipped)
        app_say("skipped %d damaged checkpoints: %s", c->skipped, c->why);
    if (c->notice[0])
        app_say("%s", c->notice);
    if (c->changes[0]) {
        app_translate(c->changes, changes, sizeof(changes));
        app_say("continuing with other settings: %s; the bits are those of a "
                "new run",
                changes);
    }
    if (rc > 0)
        app_print("resume: step=%lld from %s\n", (long long)c->step, c->path);
    else if (from) {
        app_say("--resume: no checkpoint in %s", from);
        return EXIT_USAGE;
    }
    return OPTS_GO;
}

/* Do not mix checkpoints of different runs in a folder, nor change what a run
 * that has none yet has in it: resuming from nothing locks the folder. */
static int keep_apart(const struct opts *o, const struct settings *s,
                      const char *dir, ddp_trainer_t *t)
{
    struct ddp_checkpoint c;
    int rc;

    if (!has_checkpoints(dir)) {
        rc = ddp_trainer_resume(t, NULL, &c);
        return rc == 0 ? OPTS_GO : report_resume(o, s, rc, NULL, &c);
    }
    opt_complain(o,
                 "--resume %s: %s already holds the checkpoints of a run; "
                 "continue it with --resume auto, or choose another --output",
                 s->resume, dir);
    return EXIT_USAGE;
}

int checkpoint_resume(const struct opts *o, const struct settings *s,
                      const char *dir, ddp_trainer_t *t,
                      struct ddp_checkpoint *c)
{
    struct ddp_resume_options with;
    char allowed[1024], *inner;
    int rc;

    *c = (struct ddp_checkpoint){0};
    if ((rc = changes_allowed(o, s, allowed, sizeof(allowed))) != OPTS_GO)
        return rc;
    ddp_resume_options_init(&with);
    with.changed = allowed;
    if (!strcmp(s->resume, "auto"))
        return report_resume(o, s, ddp_trainer_resume_with(t, NULL, &with, c),
                             NULL, c);
    rc = keep_apart(o, s, dir, t);
    if (rc != OPTS_GO || !strcmp(s->resume, "none"))
        return rc;
    if (!(inner = app_path(s->resume, CHECKPOINT_DIR)))
        return app_exit_code(DDP_ENOMEM);
    rc = ddp_trainer_resume_with(t, app_is_dir(inner) ? inner : s->resume,
                                 &with, c);
    free(inner);
    return report_resume(o, s, rc, s->resume, c);
}
