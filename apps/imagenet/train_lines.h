/* train_lines.h - the lines that "imagenet train" prints
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TRAIN_LINES_H
#define TRAIN_LINES_H

#include "train_run.h"

/* Before the first step: machine, data, network, batch, memory. */
void train_announce(const struct run *r);

void train_print_evaluation(const struct run *r, double seconds);

/* What an epoch has come to. */
void train_print_epoch(const struct run *r);

/* The last line, which scripts parse.  Returns 0 or an exit code. */
int train_print_final(struct run *r);

/* Checkpoints that could not be written since the last call. */
void train_report_checkpoints(struct run *r);

void train_report_bad(const ddp_dataset_t *d);
void train_report_skips(const ddp_trainer_t *t);

#endif
