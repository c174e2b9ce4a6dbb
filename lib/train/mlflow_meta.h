/* mlflow_meta.h - what a file store of MLflow says about a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MLFLOW_META_H
#define DDP_MLFLOW_META_H

/* The experiment that MLflow calls Default. */
#define DDP__MLFLOW_EXPERIMENT "0"

/* Hexadecimal digits of a run's name; the first are the milliseconds at which
 * it began, so that names are sorted by time. */
enum { DDP__MLFLOW_ID = 32, DDP__MLFLOW_ID_TIME = 12 };

/* RunStatus of its service.proto. */
enum ddp__mlflow_status {
    DDP__MLFLOW_RUNNING = 1,
    DDP__MLFLOW_FINISHED = 3,
    DDP__MLFLOW_FAILED = 4,
    DDP__MLFLOW_KILLED = 5
};

/* Milliseconds since 1970. */
long long ddp__mlflow_now(void);

/* The file meta.yaml of a run's folder, or of the experiment's.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__mlflow_run(const char *run, enum ddp__mlflow_status status);
int ddp__mlflow_experiment(const char *dir);

#endif
