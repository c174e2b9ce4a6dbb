/* memory.h - check that a run fits into memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MEMORY_H
#define DDP_MEMORY_H

#include "ddp.h"

/* DDP_ENOMEM, with a table, if the trainer's engine cannot fit. */
int ddp__memory_check(const struct ddp_trainer *t);

#endif
