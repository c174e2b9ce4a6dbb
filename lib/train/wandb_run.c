/* wandb_run.c - begin an offline run of Weights & Biases, or continue one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "train/log_files.h"
#include "train/wandb_items.h"
#include "train/wandb_machine.h"
#include "train/wandb_run.h"

/* Fields of RunRecord, GitRepoRecord, FilesRecord and FilesItem. */
enum { RUN_ID = 1, RUN_CONFIG = 4, RUN_NAME = 8, RUN_HOST = 13 };
enum { RUN_START = 17, RUN_GIT = 21, GIT_COMMIT = 2 };
enum { FILES_ITEM = 1, FILES_PATH = 1 };

#define PREFIX "offline-run-"

/* ---- its first records -------------------------------------------------- */

static int write_run(const struct ddp_log *l, struct ddp__wandb_file *f,
                     const char *id, double start)
{
    struct ddp__proto run = {0}, part = {0};
    char host[256] = "";
    int rc;

    gethostname(host, sizeof(host) - 1);
    ddp__wandb_text(&run, RUN_ID, id);
    ddp__wandb_settings(l, &part);
    ddp__proto_message(&run, RUN_CONFIG, &part);
    if (l->fact[DDP_LOG_NAME])
        ddp__wandb_text(&run, RUN_NAME, l->fact[DDP_LOG_NAME]);
    ddp__wandb_text(&run, RUN_HOST, host);
    ddp__wandb_time(&run, RUN_START, start);
    if (l->fact[DDP_LOG_REVISION]) {
        ddp__wandb_text(&part, GIT_COMMIT, l->fact[DDP_LOG_REVISION]);
        ddp__proto_message(&run, RUN_GIT, &part);
    }
    rc = ddp__wandb_write(f, DDP__WANDB_RUN, &run);
    ddp__proto_free(&run);
    ddp__proto_free(&part);
    return rc;
}

/* Files of the run's folder that are uploaded. */
static int write_files(struct ddp__wandb_file *f)
{
    struct ddp__proto files = {0}, item = {0};
    int rc;

    ddp__proto_text(&item, FILES_PATH, DDP__WANDB_METADATA);
    ddp__proto_message(&files, FILES_ITEM, &item);
    rc = ddp__wandb_write(f, DDP__WANDB_FILES, &files);
    ddp__proto_free(&files);
    ddp__proto_free(&item);
    return rc;
}

static int write_first(const struct ddp_log *l, struct ddp__wandb_file *f,
                       const char *id, double start)
{
    struct ddp__proto none = {0};
    int rc = ddp__wandb_write(f, DDP__WANDB_HEADER, &none);

    if (rc == 0 && (rc = write_run(l, f, id, start)) == 0)
        rc = write_files(f);
    return rc;
}

/* ---- its folder --------------------------------------------------------- */

/* dir/name, to be freed; NULL and a message. */
static char *make_inner(const char *dir, const char *name)
{
    char *path = ddp__path_join(dir, name);

    if (path && ddp__log_folder(path) < 0) {
        free(path);
        path = NULL;
    }
    return path;
}

/* The folders of a run, and what W&B shows about its machine. */
static int make_folders(const struct ddp_log *l, const char *dir)
{
    char *files, *logs;
    int rc;

    if ((rc = ddp__log_folder(l->dir)) < 0 || (rc = ddp__log_folder(dir)) < 0)
        return rc;
    logs = make_inner(dir, "logs");
    files = make_inner(dir, "files");
    rc = logs && files ? ddp__wandb_metadata(l, files) : ddp_errcode();
    free(files);
    free(logs);
    return rc;
}

int ddp__wandb_begin(const struct ddp_log *l, struct ddp__wandb_file *f,
                     double start)
{
    char id[9], clock[32] = "", *dir, *path = NULL;
    time_t now = (time_t)start;
    struct tm tm;
    int rc;

    ddp__log_id(id, 8, "abcdefghijklmnopqrstuvwxyz0123456789");
    if (localtime_r(&now, &tm))
        strftime(clock, sizeof(clock), "%Y%m%d_%H%M%S", &tm);
    if (asprintf(&dir, "%s/" PREFIX "%s-%s", l->dir, clock, id) < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    if ((rc = make_folders(l, dir)) == 0 &&
        asprintf(&path, "%s/run-%s.wandb", dir, id) < 0)
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a path");
    free(dir);
    if (rc == 0 && (rc = ddp__wandb_create(f, path)) == 0)
        rc = write_first(l, f, id, start);
    return rc;
}

/* ---- a run that resumes ------------------------------------------------- */

/* What a reader of records looks for. */
struct past {
    int64_t steps; /* that the run has made */
    double start;  /* of the run; 0: not found yet */
};

/* A field of the message in f. */
static bool find(const struct ddp__proto_field *f, int number,
                 struct ddp__proto_field *found)
{
    const unsigned char *at = f->data;

    while (f->data && ddp__proto_next(&at, f->data + f->len, found))
        if (found->number == number)
            return true;
    return false;
}

/* Whether f, of a record, is a row of a later step. */
static bool is_later(const struct ddp__proto_field *f, int64_t steps)
{
    struct ddp__proto_field step, number;

    return f->number == DDP__WANDB_HISTORY && find(f, DDP__WANDB_STEP, &step) &&
           find(&step, DDP__WANDB_NUMBER, &number) &&
           number.value > (uint64_t)steps;
}

static bool keeps(const unsigned char *record, size_t len, void *arg)
{
    const unsigned char *at = record;
    struct ddp__proto_field f, time, seconds;
    struct past *past = arg;

    while (ddp__proto_next(&at, record + len, &f)) {
        if (f.number == DDP__WANDB_EXIT || is_later(&f, past->steps))
            return false;
        if (f.number == DDP__WANDB_RUN && find(&f, RUN_START, &time) &&
            find(&time, DDP__WANDB_SECONDS, &seconds))
            past->start = (double)seconds.value;
    }
    return true;
}

/* The path of the newest run's file, to be freed; NULL: there is none, or no
 * memory. */
static char *find_run(const char *dir)
{
    struct ddp__names n;
    char *path = NULL;

    if (ddp__folder_list(dir, &n) < 0)
        return NULL;
    for (int i = n.count - 1; i >= 0 && !path; i--) {
        const char *id = strrchr(n.name[i], '-');

        if (strncmp(n.name[i], PREFIX, strlen(PREFIX)) != 0 ||
            asprintf(&path, "%s/%s/run-%s.wandb", dir, n.name[i], id + 1) < 0)
            path = NULL;
    }
    ddp__names_free(&n);
    return path;
}

/* Settings that a run which resumes has changed replace those it began with. */
static int write_settings(const struct ddp_log *l, struct ddp__wandb_file *f)
{
    struct ddp__proto p = {0};
    int rc = 0;

    ddp__wandb_settings(l, &p);
    if (p.len > 0)
        rc = ddp__wandb_write(f, DDP__WANDB_CONFIG, &p);
    ddp__proto_free(&p);
    return rc;
}

int ddp__wandb_resume(const struct ddp_log *l, struct ddp__wandb_file *f,
                      int64_t steps, double *start)
{
    struct past past = {.steps = steps};
    char *path = find_run(l->dir);
    int rc;

    if (!path)
        return 0;
    if ((rc = ddp__wandb_reopen(f, path, keeps, &past)) < 0)
        return rc;
    if (past.start == 0)
        return ddp__fail(DDP_EDATA, "%s lacks its run; move it away", path);
    *start = past.start;
    return (rc = write_settings(l, f)) < 0 ? rc : 1;
}
