/* checkpoints.h - a trainer's checkpoints; without a folder for them these
 * functions do nothing
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINTS_H
#define DDP_CHECKPOINTS_H

#include "checkpoint/copy.h"
#include "train/trainer.h"

int ddp__checkpoints_new(struct ddp_trainer *t);
void ddp__checkpoints_free(struct ddp_trainer *t);
/* Check, before any work is done, that checkpoints can be written. */
int ddp__checkpoints_begin(struct ddp_trainer *t);
/* Begin to prepare memory for the first, while steps run. */
void ddp__checkpoints_prepare(struct ddp_trainer *t);
/* Whether a checkpoint is to be written after the steps submitted so far. */
bool ddp__checkpoints_due(const struct ddp_trainer *t);
/* Have one written once the steps submitted so far are done. */
void ddp__checkpoints_request(struct ddp_trainer *t);
/* Whether one has been requested. */
bool ddp__checkpoints_requested(const struct ddp_trainer *t);
/* Copy the state, when all steps are done, and start to write it. */
int ddp__checkpoints_save(struct ddp_trainer *t);
/* Wait until it is on disk, and return the result. */
int ddp__checkpoints_wait(struct ddp_trainer *t);
/* The error of those that could not be written so far, if they are too many in
 * a row; else 0 at once. */
int ddp__checkpoints_failed(struct ddp_trainer *t);
/* After the failure rc of a run, write a checkpoint of the steps before it, if
 * the weights are whole.  Returns rc, and adds the outcome to its message. */
int ddp__checkpoints_rescue(struct ddp_trainer *t, int rc);

/* The folder that they are written to; NULL: none.  If there is one: lock it,
 * and note that the run resumes from its checkpoint of a step, or (-1) that it
 * holds none. */
const char *ddp__checkpoints_folder(const struct ddp_trainer *t);
int ddp__checkpoints_open(struct ddp_trainer *t);
void ddp__checkpoints_resumed(struct ddp_trainer *t, int64_t step);

#endif
