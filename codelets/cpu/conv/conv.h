/* conv.h - convolutions and dense layers of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_CONV_H
#define DDP_CPU_CONV_H

#include "ops.h"

/* The kernel of all passes of both. */
int ddp__cpu_conv_run(const struct ddp__task *t);

#endif
