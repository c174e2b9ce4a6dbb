/* rows.h - a convolution of one image in parts, each of some rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_ROWS_H
#define DDP_CPU_ROWS_H

#include "ops.h"
#include "plan.h"

/* Make the parts of a forward pass, and their primitives, where there is work
 * for more than one: the plan's way is by rows then. */
int ddp__rows_new(struct ddp__plan *p);
void ddp__rows_free(struct ddp__plan *p);

/* Run it, with the team of this thread. */
int ddp__rows_run(const struct ddp__task *t, struct ddp__plan *p);

#endif
