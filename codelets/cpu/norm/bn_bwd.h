/* bn_bwd.h - batch normalisation backward, for kernels that make its dy
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_BWD_H
#define DDP_BN_BWD_H

#include "bn_bwd_pass.h"

/* Begin a task of BN_BWD, or one that has its operands at the same places; dx
 * is NULL where it is none of them.  `more` bytes of this thread's memory that
 * are left, aligned; NULL: out of memory. */
void *ddp__bn_bwd_begin(struct ddp__bn_pass *s, const struct ddp__task *t,
                        void *dx, size_t more);

#endif
