/* groups.h - how each parameter of a chain is trained
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GROUPS_H
#define DDP_GROUPS_H

#include "train/trainer.h"

/* Find out what groups and layer_decay of the configuration mean for the
 * chain's parameters.
 * Errors   DDP_EINVAL: a pattern that matches none, or nothing is trained. */
int ddp__groups_resolve(struct ddp_trainer *t);

#endif
