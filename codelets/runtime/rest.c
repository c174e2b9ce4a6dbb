/* rest.c - workers without a task sleep
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A worker of StarPU that gets no task asks again at once, and so takes time of
 * a core from other threads: from the one that makes the next step's tasks or
 * the initial weights, those that decode images or write a checkpoint, and from
 * other programs.  The policy knows when it has something for a worker, which
 * may sleep until then.  To wake up takes longer than a task should wait, so it
 * spins for as long as gaps within steps last.
 *
 * Nobody calls a worker because StarPU ends or has a task past the policy, nor
 * for transfers between memories: so it sleeps for a short time, and where
 * there is one memory.  What has waited for long may wait for as long again: to
 * wake up takes 20 us of a core.
 */
#include "config.h"

#include <math.h>

#include "base/clock.h"
#include "runtime/rest.h"
#include "runtime/task_group.h"

#define LEAST_S 2e-3
#define MOST_S 20e-3
#define SPIN_S 200e-6

void ddp__rest_idle(struct ddp__rest *r)
{
    r->since = ddp__now();
}

#ifndef STARPU_SIMGRID

void ddp__rest_init(struct ddp__rest *r)
{
    ddp__clock_condition(&r->called);
}

void ddp__rest_fini(struct ddp__rest *r)
{
    pthread_cond_destroy(&r->called);
}

bool ddp__rest_due(const struct ddp__rest *r)
{
    return ddp__now() - r->since > SPIN_S &&
           starpu_memory_nodes_get_count() == 1;
}

void ddp__rest_begin(struct ddp__rest *r, starpu_pthread_mutex_t *lock,
                     double seconds)
{
    double most = fmin(fmax(ddp__now() - r->since, LEAST_S), MOST_S);
    struct timespec end;

    if (seconds <= 0)
        return;
    end = ddp__clock_after(fmin(seconds, most));
    pthread_cond_timedwait(&r->called, lock, &end);
}

void ddp__rest_end(struct ddp__rest *r)
{
    pthread_cond_signal(&r->called);
}

#else /* simulated workers take no time to ask */

void ddp__rest_init(struct ddp__rest *r)
{
    (void)r;
}

void ddp__rest_fini(struct ddp__rest *r)
{
    (void)r;
}

bool ddp__rest_due(const struct ddp__rest *r)
{
    (void)r;
    return false;
}

void ddp__rest_begin(struct ddp__rest *r, starpu_pthread_mutex_t *lock,
                     double seconds)
{
    (void)r;
    (void)lock;
    (void)seconds;
}

void ddp__rest_end(struct ddp__rest *r)
{
    (void)r;
}

#endif
