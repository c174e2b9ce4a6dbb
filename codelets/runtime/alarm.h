/* alarm.h - workers that look again at a time, where StarPU blocks idle ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Usually an idle worker asks the policy again and again, and so sees by itself
 * when those that it has left work to are late.  StarPU with blocking drivers,
 * as in a simulation, has it sleep until it is called.
 */
#ifndef DDP_ALARM_H
#define DDP_ALARM_H

#include "runtime/claims.h"

struct ddp__alarm {
    struct ddp__claims *claims;   /* not owned */
    starpu_pthread_mutex_t *lock; /* of these; not owned */
    starpu_pthread_cond_t changed;
    starpu_pthread_t thread;
    bool runs, end;
};

void ddp__alarm_init(struct ddp__alarm *a, struct ddp__claims *c,
                     starpu_pthread_mutex_t *lock);
void ddp__alarm_fini(struct ddp__alarm *a);

/* A worker waits until a time at most; with the lock. */
void ddp__alarm_set(struct ddp__alarm *a);

#endif
