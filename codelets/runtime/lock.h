/* lock.h - a lock, and a change that its holder can wait for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU's, since in a simulation a thread that waits must let time pass.
 */
#ifndef DDP_LOCK_H
#define DDP_LOCK_H

#include <starpu.h>

struct ddp__lock {
    starpu_pthread_mutex_t mutex;
    starpu_pthread_cond_t changed;
};

void ddp__lock_init(struct ddp__lock *l);
void ddp__lock_fini(struct ddp__lock *l);
void ddp__lock_acquire(struct ddp__lock *l);
void ddp__lock_release(struct ddp__lock *l);

/* By the holder: sleep without the lock until somebody calls notify, then hold
 * it again. */
void ddp__lock_wait(struct ddp__lock *l);
void ddp__lock_notify(struct ddp__lock *l);

#endif
