/* owners.h - the workers that lanes, merges and updates belong to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_OWNERS_H
#define DDP_OWNERS_H

#include <starpu.h>

#include "runtime/claims.h"

/* The worker that begins with a lane, to which t belongs, or -1: each worker
 * has about as many consecutive lanes. */
int ddp__home_worker(const struct ddp__claims *c, struct starpu_task *t,
                     const struct ddp__sched_tag *tag);

/* The worker that t, a merge or an update, goes to, or -1. */
int ddp__owner_worker(const struct ddp__claims *c, struct starpu_task *t,
                      const struct ddp__sched_tag *tag);

#endif
