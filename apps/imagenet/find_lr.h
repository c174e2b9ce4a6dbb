/* find_lr.h - "imagenet train --find-lr": a learning rate to begin with
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef FIND_LR_H
#define FIND_LR_H

#include "ddp.h"

#include "options.h"

/* Train with rates that rise from step to step, up to where the loss explodes;
 * draw the losses, and print the rate at which they fell most.  With --output
 * also lr_find.csv in that folder.  Returns the exit code. */
int find_lr(const struct settings *s, ddp_t *ddp, ddp_chain_t *c,
            ddp_dataset_t *data, struct ddp_train_config *cfg, bool writes);

#endif
