/* tracing.h - the trace and the graph of some steps of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TRACING_H
#define DDP_TRACING_H

#include "train/trainer.h"

/* Before a step is submitted: begin if this is the first to trace. */
int ddp__tracing_begin(struct ddp_trainer *t);

/* After a step is reported, or (all) the last one: write the files if all of
 * the trace is there. */
int ddp__tracing_end(struct ddp_trainer *t, bool all);

#endif
