/* ops_times.h - measured times of operations, which replace estimated ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_OPS_TIMES_H
#define DDP_OPS_TIMES_H

#include "ops.h"

/* What a call takes on n samples; below 0: that was not set. */
double ddp__times_find(const struct ddp__call *c, int n);

/* What the runtime needs for a task, in microseconds; 0: that was not set. */
double ddp__times_task(void);

/* Different operations that were looked for and not found, if any is set. */
int ddp__times_unknown(void);

#endif
