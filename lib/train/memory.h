/* memory.h - check that a run fits into memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MEMORY_H
#define DDP_MEMORY_H

#include "ddp.h"

/* Plan how the trainer's engine uses memory; DDP_ENOMEM, with a table, if it
 * cannot fit. */
int ddp__memory_check(struct ddp_trainer *t);

#endif
