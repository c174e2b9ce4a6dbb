/* wandb_run.h - begin an offline run of Weights & Biases, or continue one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WANDB_RUN_H
#define DDP_WANDB_RUN_H

#include "train/log.h"
#include "train/wandb_file.h"

/* A run in the log's folder that begins at `start`, seconds since 1970: its
 * folders, and its file with the settings and facts.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__wandb_begin(const struct ddp_log *l, struct ddp__wandb_file *f,
                     double start);

/* Continue the newest run there, without rows of later steps and how it ended.
 * Returns 1, with when it began, or 0 if there is none.
 * Errors   DDP_EDATA: its file is damaged; DDP_EIO, DDP_ENOMEM. */
int ddp__wandb_resume(const struct ddp_log *l, struct ddp__wandb_file *f,
                      int64_t steps, double *start);

#endif
