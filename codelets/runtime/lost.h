/* lost.h - devices that fail under StarPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RUNTIME_LOST_H
#define DDP_RUNTIME_LOST_H

#include <stdbool.h>

struct ddp__device;

/* Accelerators of this kind are in use, NULL: none; none has failed so far. */
void ddp__lost_watch(const struct ddp__device *d);

/* A function of StarPU met this error of the driver, while it measured copies
 * or later.  false: not in use here. */
bool ddp__lost_note(const char *function, int error, bool measures);

/* Whether one has failed: what buffers contain is of no use any more, copies
 * are not made, and each later task fails. */
bool ddp__lost_any(void);

/* Whether one failed while StarPU measured copies: it stored wrong numbers. */
bool ddp__lost_measuring(void);

/* The failure, which names it: DDP_EDEVICE, or DDP_ENOMEM if StarPU had no
 * memory; 0: none has failed. */
int ddp__lost_check(void);

#endif
