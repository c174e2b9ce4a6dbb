/* backend.h - the CUDA backend, and one kernel per operation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_BACKEND_H
#define DDP_CUDA_BACKEND_H

#include "ops_backend.h"

extern struct ddp__backend ddp__cuda;

/* Of all ops, ours and those by cuDNN and cuBLASLt. */
#define X(id, name, traits) int ddp__cuda_##name(const struct ddp__task *t);
DDP__OPS(X)
#undef X

/* The line of devices reports why cuDNN does not run batch norm; the first
 * reason is kept.  "": none. */
void ddp__cuda_fell_back(const char *why);

#endif
