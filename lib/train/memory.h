/* memory.h - check that a run fits into memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MEMORY_H
#define DDP_MEMORY_H

#include "ddp.h"

/* The most accumulators of a step that exist at a time, if so many of its lanes
 * are in flight, and each has at most `rounds` sub-batches. */
int ddp__memory_accumulators(int lanes, int in_flight, int rounds);

/* Plan how the trainer's engine uses memory; DDP_ENOMEM, with a table, if it
 * cannot fit. */
int ddp__memory_check(struct ddp_trainer *t);

#endif
