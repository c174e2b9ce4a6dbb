/* lock.c - a lock, and a change that its holder can wait for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/lock.h"

void ddp__lock_init(struct ddp__lock *l)
{
    starpu_pthread_mutex_init(&l->mutex, NULL);
    starpu_pthread_cond_init(&l->changed, NULL);
}

void ddp__lock_fini(struct ddp__lock *l)
{
    starpu_pthread_cond_destroy(&l->changed);
    starpu_pthread_mutex_destroy(&l->mutex);
}

void ddp__lock_acquire(struct ddp__lock *l)
{
    starpu_pthread_mutex_lock(&l->mutex);
}

void ddp__lock_release(struct ddp__lock *l)
{
    starpu_pthread_mutex_unlock(&l->mutex);
}

void ddp__lock_wait(struct ddp__lock *l)
{
    starpu_pthread_cond_wait(&l->changed, &l->mutex);
}

void ddp__lock_notify(struct ddp__lock *l)
{
    starpu_pthread_cond_broadcast(&l->changed);
}
