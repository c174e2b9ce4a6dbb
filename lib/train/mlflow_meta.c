/* mlflow_meta.c - what a file store of MLflow says about a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "train/log_files.h"
#include "train/mlflow_meta.h"

long long ddp__mlflow_now(void)
{
    return (long long)(1e3 * ddp__log_now());
}

/* The address of a folder, which MLflow has for files that are uploaded. */
static void print_address(FILE *f, const char *key, const char *dir)
{
    char *path = realpath(dir, NULL);

    fprintf(f, "%s: file://", key);
    for (const char *c = path ? path : dir; *c; c++)
        fprintf(f,
                isalnum((unsigned char)*c) || strchr("/-._~", *c) ? "%c"
                                                                  : "%%%02X",
                (unsigned char)*c);
    fputc('\n', f);
    free(path);
}

static int write_meta(const char *dir, const char *text)
{
    char *path = ddp__path_join(dir, "meta.yaml");
    int rc = path ? ddp__log_write(path, text) : ddp_errcode();

    free(path);
    return rc;
}

static void print_run(FILE *f, const char *run, enum ddp__mlflow_status status)
{
    const char *id = run + strlen(run) - DDP__MLFLOW_ID;
    char digits[DDP__MLFLOW_ID_TIME + 1] = "",
                                      *inner = ddp__path_join(run, "artifacts");

    memcpy(digits, id, DDP__MLFLOW_ID_TIME);
    if (inner)
        print_address(f, "artifact_uri", inner);
    free(inner);
    if (status == DDP__MLFLOW_RUNNING)
        fputs("end_time: null\n", f);
    else
        fprintf(f, "end_time: %lld\n", ddp__mlflow_now());
    fprintf(f,
            "entry_point_name: ''\nexperiment_id: '" DDP__MLFLOW_EXPERIMENT
            "'\n"
            "lifecycle_stage: active\nrun_id: '%s'\nrun_name: ''\n"
            "source_name: ''\nsource_type: 4\nsource_version: ''\n"
            "start_time: %lld\nstatus: %d\ntags: []\nuser_id: ''\n",
            id, strtoll(digits, NULL, 16), status);
}

static void print_experiment(FILE *f, const char *dir,
                             enum ddp__mlflow_status status)
{
    (void)status;
    print_address(f, "artifact_location", dir);
    fprintf(f,
            "creation_time: %lld\nexperiment_id: '" DDP__MLFLOW_EXPERIMENT "'\n"
            "lifecycle_stage: active\nname: Default\n",
            ddp__mlflow_now());
}

static int put_meta(const char *dir, enum ddp__mlflow_status status,
                    void (*print)(FILE *, const char *,
                                  enum ddp__mlflow_status))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    int rc;

    if (f)
        print(f, dir, status);
    if (!f || fclose(f) != 0)
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a log");
    else
        rc = write_meta(dir, text);
    free(text);
    return rc;
}

int ddp__mlflow_run(const char *run, enum ddp__mlflow_status status)
{
    return put_meta(run, status, print_run);
}

int ddp__mlflow_experiment(const char *dir)
{
    return put_meta(dir, DDP__MLFLOW_RUNNING, print_experiment);
}
