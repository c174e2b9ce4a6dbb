/* amx_fill.h - operands of an AMX weight gradient, in its order
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_AMX_FILL_H
#define DDP_CPU_AMX_FILL_H

#include "amx_run.h"

/* Segments first .. first + count - 1 of the batch into a and b. */
void ddp__amx_fill(const struct ddp__amx_run *r, size_t first, size_t count);

#endif
