/* times.h - measured times of operations, which replace estimated ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SIM_TIMES_H
#define DDP_SIM_TIMES_H

#include "ddp.h"
#include "ops.h"

/* From now on this operation takes so many microseconds; false: no memory. */
bool ddp__times_set(const struct ddp_operation *o, double us);

/* What a call takes on n samples; below 0: that was not set. */
double ddp__times_find(const struct ddp__call *c, int n);

/* Different operations that were looked for and not found, if any is set. */
int ddp__times_unknown(void);

#endif
