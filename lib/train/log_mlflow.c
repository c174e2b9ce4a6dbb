/* log_mlflow.c - a log as a file store of MLflow
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The layout of mlflow/store/tracking/file_store.py: experiment 0 has a folder
 * for each run, with a file for each value (a line "milliseconds value step"
 * for each step), setting and fact, and meta.yaml.  A run that resumes
 * continues the newest folder and cuts off lines of later steps.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "train/log_files.h"
#include "train/log_mlflow.h"
#include "train/mlflow_meta.h"

struct mlflow {
    char *run; /* its folder, owned */
    bool ended;
};

/* ---- files of values ---------------------------------------------------- */

/* The folders of a path below `dir`, and that one. */
static int make_folders(const char *dir, char *path)
{
    int rc = 0;

    for (char *end = path + strlen(dir); rc == 0 && end;
         end = strchr(end + 1, '/')) {
        *end = '\0';
        rc = ddp__log_folder(path);
        *end = '/';
    }
    return rc;
}

/* In one piece: a reader sees whole lines. */
static int write_text(const char *dir, char *path, int flags, const char *text)
{
    size_t len = strlen(text);
    int fd, rc = 0;

    flags |= O_WRONLY | O_CREAT | O_CLOEXEC;
    fd = open(path, flags, 0666);
    if (fd < 0 && errno == ENOENT) {
        if ((rc = make_folders(dir, path)) < 0)
            return rc;
        fd = open(path, flags, 0666);
    }
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        rc = ddp__fail(DDP_EIO, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* MLflow allows few characters in names, of which slashes make folders. */
static int put_file(const struct ddp_log *l, const char *kind, const char *name,
                    int flags, const char *text)
{
    const struct mlflow *m = l->own;
    char *path;
    int rc;

    if (!ddp__path_is_below(name))
        return ddp__fail(DDP_EINVAL,
                         "\"%s\" cannot name a file in a log for MLflow", name);
    if (asprintf(&path, "%s/%s/%s", m->run, kind, name) < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    for (char *c = path + strlen(path) - strlen(name); *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-. :/", *c))
            *c = '_';
    rc = write_text(l->dir, path, flags, text);
    free(path);
    return rc;
}

static int put(struct ddp_log *l, int64_t step, const struct ddp__log_value *v,
               int n)
{
    char line[80];
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++) {
        snprintf(line, sizeof(line), "%lld %.17g %lld\n", ddp__mlflow_now(),
                 v[i].v, (long long)step);
        rc = put_file(l, "metrics", v[i].tag, O_APPEND, line);
    }
    return rc;
}

/* ---- settings and facts ------------------------------------------------- */

static int put_settings(const struct ddp_log *l)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < l->settings; i += 2)
        rc = put_file(l, "params", l->setting[i], O_TRUNC, l->setting[i + 1]);
    return rc;
}

static int put_facts(const struct ddp_log *l)
{
    static const char *const tag[DDP_LOG_FACTS] = {
        [DDP_LOG_NAME] = "mlflow.runName",
        [DDP_LOG_COMMAND] = "mlflow.source.name",
        [DDP_LOG_REVISION] = "mlflow.source.git.commit",
    };
    int rc = put_file(l, "tags", "mlflow.source.type", O_TRUNC, "LOCAL");

    for (int i = 0; rc == 0 && i < DDP_LOG_FACTS; i++)
        if (l->fact[i])
            rc = put_file(l, "tags", tag[i], O_TRUNC, l->fact[i]);
    return rc;
}

/* ---- a run that resumes ------------------------------------------------- */

/* Where the first line of a later step, or one that is not whole, begins. */
static off_t end_of_past(FILE *f, int64_t steps)
{
    char line[128];
    off_t end = 0;
    long long step;

    while (fgets(line, sizeof(line), f) && strchr(line, '\n') &&
           sscanf(line, "%*s %*s %lld", &step) == 1 && step <= steps)
        end = ftello(f);
    return end;
}

/* MLflow refuses a file without lines. */
static int cut_file(int fd, const char *name, int64_t steps)
{
    int file = openat(fd, name, O_RDWR | O_CLOEXEC), rc = -1;
    FILE *f = file < 0 ? NULL : fdopen(file, "r");
    off_t end;

    if (f) {
        end = end_of_past(f, steps);
        rc = end > 0 ? ftruncate(file, end) : unlinkat(fd, name, 0);
        fclose(f);
    } else if (file >= 0) {
        close(file);
    }
    return rc < 0 ? ddp__fail(DDP_EIO, "cannot shorten %s: %s", name,
                              strerror(errno))
                  : 0;
}

static int cut_entry(int fd, const struct dirent *e, void *arg)
{
    if (ddp__is_hidden(e->d_name))
        return 0;
    return ddp__entry_is_folder(fd, e)
               ? ddp__folder_each(fd, e->d_name, cut_entry, arg)
               : cut_file(fd, e->d_name, *(int64_t *)arg);
}

/* The folder of the newest run; NULL: there is none, or no memory. */
static char *find_run(const char *experiment)
{
    struct ddp__names n;
    char *path = NULL;

    if (ddp__folder_list(experiment, &n) < 0)
        return NULL;
    for (int i = n.count - 1; i >= 0 && !path; i--)
        if (strlen(n.name[i]) == DDP__MLFLOW_ID)
            path = ddp__path_join(experiment, n.name[i]);
    ddp__names_free(&n);
    return path;
}

/* ---- the format --------------------------------------------------------- */

static char *name_run(const char *experiment)
{
    char id[DDP__MLFLOW_ID + 1];

    snprintf(id, sizeof(id), "%0*llx", DDP__MLFLOW_ID_TIME, ddp__mlflow_now());
    ddp__log_id(id + DDP__MLFLOW_ID_TIME, DDP__MLFLOW_ID - DDP__MLFLOW_ID_TIME,
                "0123456789abcdef");
    return ddp__path_join(experiment, id);
}

/* Folders that MLflow expects of a run, also if they are empty. */
static int make_run(const char *dir, const char *run)
{
    static const char *const inner[] = {"metrics", "params", "artifacts"};
    char *path;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(inner) / sizeof(*inner); i++) {
        if (asprintf(&path, "%s/%s/", run, inner[i]) < 0)
            return ddp__fail(DDP_ENOMEM, "out of memory for a path");
        rc = make_folders(dir, path);
        free(path);
    }
    return rc;
}

static int cut_run(const char *run, int64_t steps)
{
    char *path = ddp__path_join(run, "metrics");
    int rc = path ? ddp__folder_each(AT_FDCWD, path, cut_entry, &steps)
                  : ddp_errcode();

    free(path);
    return rc;
}

static int open_in(struct ddp_log *l, const char *experiment, int64_t steps)
{
    struct mlflow *m = l->own;
    int rc = 0;

    if (steps > 0)
        m->run = find_run(experiment);
    if (!m->run && !(m->run = name_run(experiment)))
        return ddp_errcode();
    if ((rc = make_run(l->dir, m->run)) < 0 ||
        (rc = cut_run(m->run, steps)) < 0 || (rc = put_facts(l)) < 0 ||
        (rc = put_settings(l)) < 0 ||
        (rc = ddp__mlflow_experiment(experiment)) < 0)
        return rc;
    return ddp__mlflow_run(m->run, DDP__MLFLOW_RUNNING);
}

static int open_run(struct ddp_log *l, int64_t steps)
{
    char *experiment = ddp__path_join(l->dir, DDP__MLFLOW_EXPERIMENT);
    int rc = experiment ? open_in(l, experiment, steps) : ddp_errcode();

    free(experiment);
    return rc;
}

static int end(struct ddp_log *l, int rc)
{
    struct mlflow *m = l->own;

    m->ended = true;
    return ddp__mlflow_run(m->run, rc == 0              ? DDP__MLFLOW_FINISHED
                                   : rc == DDP_ESTOPPED ? DDP__MLFLOW_KILLED
                                                        : DDP__MLFLOW_FAILED);
}

/* There was no end without a trainer. */
static void close_run(struct ddp_log *l)
{
    struct mlflow *m = l->own;

    if (m->run && !m->ended)
        ddp__mlflow_run(m->run, DDP__MLFLOW_FINISHED);
    free(m->run);
}

const struct ddp__log_format ddp__log_mlflow = {
    .name = "mlflow",
    .size = sizeof(struct mlflow),
    .open = open_run,
    .put = put,
    .end = end,
    .close = close_run,
};
