/* memory.h - check that a run fits into memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MEMORY_H
#define DDP_MEMORY_H

#include "ddp.h"

struct ddp__engine;

/* Plan how the trainer's engine uses memory; DDP_ENOMEM, with a table, if it
 * cannot fit. */
int ddp__memory_check(struct ddp_trainer *t);

/* Add what evaluation keeps, in place of what another one kept: its
 * activations take the place of those of training.  DDP_ENOMEM. */
int ddp__memory_evaluate(struct ddp_trainer *t, const struct ddp__engine *e);

#endif
