/* train_folder.h - the folder of a run of "imagenet train"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TRAIN_FOLDER_H
#define TRAIN_FOLDER_H

#include "train_run.h"

/* Rank 0 writes for all. */
bool train_is_writer(const struct run *r);

/* These return an exit code after a message, or OPTS_GO. */

/* --output, or a new folder, which all ranks use. */
int train_name_folder(struct run *r);

/* Resume from its checkpoint if there is one; then its files begin. */
int train_begin_folder(struct run *r);

/* A run that is stopped leaves a checkpoint to resume from. */
int train_save_checkpoint(struct run *r);

/* The result of a run that is complete. */
int train_save_weights(struct run *r);

/* By --patience. */
bool train_ended_early(const struct run *r);

/* Its run.json says with which exit code, and why. */
void train_end_folder(struct run *r, int code);

#endif
