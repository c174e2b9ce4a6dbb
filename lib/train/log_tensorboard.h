/* log_tensorboard.h - a log as event files for TensorBoard
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOG_TENSORBOARD_H
#define DDP_LOG_TENSORBOARD_H

#include "train/log.h"

extern const struct ddp__log_format ddp__log_tensorboard;

#endif
