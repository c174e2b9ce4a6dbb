/* thread.c - threads that take no signals
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>

#include "base/thread.h"

enum { STACK = 512 << 10 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cpu_set_t cores;
static bool known;

static void note_cores(void)
{
    known = sched_getaffinity(0, sizeof(cores), &cores) == 0;
}

void ddp__thread_note_cores(void)
{
    pthread_once(&once, note_cores);
}

int ddp__thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    if ((rc = pthread_attr_init(&attr)) != 0)
        return rc;
    pthread_attr_setstacksize(&attr, STACK);
    if (known)
        pthread_attr_setaffinity_np(&attr, sizeof(cores), &cores);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(t, &attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}
