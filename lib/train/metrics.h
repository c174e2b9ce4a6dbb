/* metrics.h - loss and accuracy of a step, and of the epoch so far
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_METRICS_H
#define DDP_METRICS_H

#include "train/trainer.h"

/* From sums by DDP__STAT_... */
struct ddp_metrics ddp__metrics(const double *stats);
/* Count a step's sums in its epoch. */
void ddp__metrics_add(struct ddp__run *r, const double *s);
/* Of the epoch so far. */
struct ddp_metrics ddp__trainer_epoch_mean(const struct ddp_trainer *t);

#endif
