/* log_mlflow.h - a log as a file store of MLflow
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOG_MLFLOW_H
#define DDP_LOG_MLFLOW_H

#include "train/log.h"

extern const struct ddp__log_format ddp__log_mlflow;

#endif
