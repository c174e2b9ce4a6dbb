/* resume.h - a trainer continues from a checkpoint
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RESUME_H
#define DDP_RESUME_H

#include "checkpoint/copy.h"
#include "train/trainer.h"

/* Have a trainer between two steps continue with the state in copy, at the
 * position run, which it takes over. */
int ddp__resume_state(struct ddp_trainer *t, struct ddp__run *run,
                      struct ddp__ckpt_copy *copy);

#endif
