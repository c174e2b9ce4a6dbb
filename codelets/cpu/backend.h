/* backend.h - the CPU backend, and one kernel per operation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_BACKEND_H
#define DDP_CPU_BACKEND_H

#include "ops_backend.h"

extern const struct ddp__backend ddp__cpu;

#define X(id, name, traits) int ddp__cpu_##name(const struct ddp__task *t);
DDP__OPS(X)
#undef X

#endif
