/* alarm.c - workers that look again at a time, where StarPU blocks idle ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include <starpu_thread_util.h>

#include "base/clock.h"
#include "runtime/alarm.h"
#include "runtime/task_group.h"

#ifndef STARPU_NON_BLOCKING_DRIVERS

/* Simulated workers notice an earlier time only so often. */
#define LOOK_S 1e-3

/* The worker that shall look again first; -1: none. */
static int first_due(const struct ddp__claims *c)
{
    int first = -1;

    for (int i = 0; i < c->workers; i++) {
        int id = c->id[i];

        if (c->by[id].waiting && c->by[id].until > 0 &&
            (first < 0 || c->by[id].until < c->by[first].until))
            first = id;
    }
    return first;
}

#ifdef STARPU_SIMGRID

/* SimGrid 3.32 locks a mutex twice that a thread waits with for a time. */
static void wait_for(struct ddp__alarm *a, double seconds)
{
    STARPU_PTHREAD_MUTEX_UNLOCK(a->lock);
    starpu_sleep((float)fmin(seconds, LOOK_S));
    STARPU_PTHREAD_MUTEX_LOCK(a->lock);
}

static void init_condition(starpu_pthread_cond_t *c)
{
    STARPU_PTHREAD_COND_INIT(c, NULL);
}

#else

/* Without the lock until a change, or for so many seconds. */
static void wait_for(struct ddp__alarm *a, double seconds)
{
    struct timespec end = ddp__clock_after(seconds);

    starpu_pthread_cond_timedwait(&a->changed, a->lock, &end);
}

static void init_condition(starpu_pthread_cond_t *c)
{
    ddp__clock_condition(c);
}

#endif

/* Let go of the lock to wake a worker, which takes it. */
static void wake(struct ddp__alarm *a, int id)
{
    a->claims->by[id].waiting = false;
    STARPU_PTHREAD_MUTEX_UNLOCK(a->lock);
    starpu_wake_worker_relax_light(id);
    STARPU_PTHREAD_MUTEX_LOCK(a->lock);
}

static void *watch(void *arg)
{
    struct ddp__alarm *a = arg;

    STARPU_PTHREAD_MUTEX_LOCK(a->lock);
    while (!a->end) {
        int id = first_due(a->claims);
        double left = id < 0 ? 0 : a->claims->by[id].until - ddp__now();

        if (id < 0)
            STARPU_PTHREAD_COND_WAIT(&a->changed, a->lock);
        else if (left > 0)
            wait_for(a, left);
        else
            wake(a, id);
    }
    STARPU_PTHREAD_MUTEX_UNLOCK(a->lock);
    return NULL;
}

/* Without a thread workers look again when they are called. */
void ddp__alarm_init(struct ddp__alarm *a, struct ddp__claims *c,
                     starpu_pthread_mutex_t *lock)
{
    *a = (struct ddp__alarm){.claims = c, .lock = lock};
    init_condition(&a->changed);
    a->runs = starpu_pthread_create(&a->thread, NULL, watch, a) == 0;
}

void ddp__alarm_fini(struct ddp__alarm *a)
{
    STARPU_PTHREAD_MUTEX_LOCK(a->lock);
    a->end = true;
    STARPU_PTHREAD_COND_SIGNAL(&a->changed);
    STARPU_PTHREAD_MUTEX_UNLOCK(a->lock);
    if (a->runs)
        starpu_pthread_join(a->thread, NULL);
    STARPU_PTHREAD_COND_DESTROY(&a->changed);
}

void ddp__alarm_set(struct ddp__alarm *a)
{
    STARPU_PTHREAD_COND_SIGNAL(&a->changed);
}

#else /* idle workers ask again */

void ddp__alarm_init(struct ddp__alarm *a, struct ddp__claims *c,
                     starpu_pthread_mutex_t *lock)
{
    (void)a;
    (void)c;
    (void)lock;
}

void ddp__alarm_fini(struct ddp__alarm *a)
{
    (void)a;
}

void ddp__alarm_set(struct ddp__alarm *a)
{
    (void)a;
}

#endif
