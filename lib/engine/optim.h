/* optim.h - the states of optimizers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_OPTIM_H
#define DDP_OPTIM_H

#include "ddp.h"

/* The vectors, each as long as the weights, that an update keeps: how many,
 * and their names. */
int ddp__optimizer_state(const struct ddp_optimizer *o, const char *name[2]);

#endif
