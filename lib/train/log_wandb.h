/* log_wandb.h - a log as an offline run of Weights & Biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOG_WANDB_H
#define DDP_LOG_WANDB_H

#include "train/log.h"

extern const struct ddp__log_format ddp__log_wandb;

#endif
