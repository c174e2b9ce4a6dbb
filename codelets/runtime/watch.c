/* watch.c - whether MPI returns to the thread that carries messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * MPI need not survive the loss of a rank.  Open MPI 4.1.4 may spin in MPI_Test
 * for ever when it writes to a TCP connection that has just broken: libevent
 * then walks along a list without end.  The thread that calls MPI can no longer
 * tell who is lost; another one does.
 */
#include "config.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "runtime/net.h"
#include "runtime/watch.h"

/* Seconds. */
#define LOOK 0.5 /* between two looks */
#define DEAD 1.0 /* inside MPI since a process of this host has died */

void ddp__watch_tick(struct ddp__net *n)
{
    atomic_fetch_add_explicit(&n->watch.ticks, 1, memory_order_relaxed);
}

/* Whether to look again, after some time. */
static bool await_look(struct ddp__net *n)
{
    struct timespec until = ddp__clock_after(LOOK);
    int rc = 0;

    pthread_mutex_lock(&n->lock);
    while (!n->watch.ended && rc == 0)
        rc = pthread_cond_timedwait(&n->watch.end, &n->lock, &until);
    pthread_mutex_unlock(&n->lock);
    return rc == ETIMEDOUT;
}

/* The seconds that it has been inside MPI.  While this process is stopped as a
 * whole, they do not pass. */
static double count_still(struct ddp__net *n, double *still, int64_t *ticks)
{
    int64_t now = atomic_load_explicit(&n->watch.ticks, memory_order_relaxed);

    *still = now == *ticks ? *still + LOOK : 0;
    *ticks = now;
    return *still;
}

static void *watch(void *arg)
{
    struct ddp__net *n = arg;
    double still = 0;
    int64_t ticks = -1;
    int rc = 0;

    while (rc == 0 && await_look(n))
        if (count_still(n, &still, &ticks) >= DEAD)
            rc = ddp__peers_inside(n, still);
    if (rc < 0)
        ddp__net_abandon(n, rc);
    return NULL;
}

int ddp__watch_begin(struct ddp__net *n)
{
    struct ddp__watch *w = &n->watch;

    ddp__clock_condition(&w->end);
    if (ddp__thread_start(&w->thread, watch, n) == 0)
        return 0;
    pthread_cond_destroy(&w->end);
    return ddp__fail(DDP_ENOMEM, "no thread that looks for lost ranks");
}

void ddp__watch_end(struct ddp__net *n)
{
    struct ddp__watch *w = &n->watch;

    pthread_mutex_lock(&n->lock);
    w->ended = true;
    pthread_cond_signal(&w->end);
    pthread_mutex_unlock(&n->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->end);
}
