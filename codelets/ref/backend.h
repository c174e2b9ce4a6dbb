/* backend.h - the reference backend, and one kernel per operation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REF_BACKEND_H
#define DDP_REF_BACKEND_H

#include "ops_backend.h"

extern const struct ddp__backend ddp__ref;

/* One kernel for each operation. */
#define X(id, name, traits) int ddp__ref_##name(const struct ddp__task *t);
DDP__OPS(X)
#undef X

#endif
