/* snapshot.h - the state of a trainer between two steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SNAPSHOT_H
#define DDP_SNAPSHOT_H

#include "checkpoint/copy.h"
#include "train/trainer.h"

/* The trainer need not have a folder for checkpoints.  The copy is to be freed.
 */
int ddp__snapshot_take(const struct ddp_trainer *t,
                       struct ddp__ckpt_copy *copy);

/* What decides the weights: ddp__settings_json() of the run. */
int ddp__snapshot_settings(const struct ddp_trainer *t, json_t **out);
/* What computes them.  Two runs whose devices have equal descriptions compute
 * equal bits. */
void ddp__snapshot_devices(const ddp_t *ddp, char *text, size_t size);

#endif
