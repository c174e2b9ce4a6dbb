/* train_events.h - what "imagenet train" does between steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TRAIN_EVENTS_H
#define TRAIN_EVENTS_H

#include "train_run.h"

/* What the trainer is to call. */
void train_callbacks(struct run *r, struct ddp_train_config *cfg);

/* These return an exit code after a message, or 0. */

/* An evaluation that is interrupted is discarded. */
int train_evaluate(struct run *r);
bool train_is_evaluated(const struct run *r);

/* Not again if the checkpoint holds the evaluation of this step. */
int train_evaluate_if(struct run *r, bool due);

/* What the logs show of a run that begins. */
int train_record_network(struct run *r);

/* The row of the last epoch, once it is evaluated if that is due. */
void train_record_row(struct run *r, bool due);

#endif
