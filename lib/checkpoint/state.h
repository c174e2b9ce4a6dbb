/* state.h - trainer.json: a run's settings, and where it was
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_STATE_H
#define DDP_CHECKPOINT_STATE_H

#include <jansson.h>

#include "train/trainer.h"

/* trainer.json; NULL without memory. */
json_t *ddp__checkpoint_state(const struct ddp_trainer *t);

/* DDP_EINVAL and what differs when the state is of a run with other settings;
 * DDP_EDATA when it is no such state at all. */
int ddp__checkpoint_check(const struct ddp_trainer *t, const char *path,
                          const json_t *state);

/* Where the run was.  DDP_EDATA. */
int ddp__checkpoint_parse(const json_t *state, const char *path,
                          struct ddp__run *run);

#endif
