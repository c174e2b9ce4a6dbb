/* scheduler_next.h - which task a worker takes next
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SCHEDULER_NEXT_H
#define DDP_SCHEDULER_NEXT_H

#include "runtime/scheduler_calls.h"

/* With the lock held; NULL: there is none for it now. */
struct starpu_task *ddp__sched_next(struct ddp__sched *s, int id,
                                    struct ddp__sched_calls *c);

#endif
