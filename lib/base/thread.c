/* thread.c - threads that take no signals
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

enum { STACK = 512 << 10, MOST = 16, PIECE = 4 << 20 };

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

/* ---- starting ----------------------------------------------------------- */

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

/* ---- many that share work ----------------------------------------------- */

struct work {
    int n;
    void (*fn)(void *arg, int i);
    void *arg;
    atomic_int next;
    sem_t ready;          /* threads that could begin */
    pthread_mutex_t gate; /* closed until all could */
};

static void *do_work(void *arg)
{
    struct work *w = arg;
    int i;

    while ((i = atomic_fetch_add(&w->next, 1)) < w->n)
        w->fn(w->arg, i);
    return NULL;
}

/* For a thread's first allocation glibc takes 64 MiB of address space: before
 * any thread works, so that room which one of them has found is still there. */
static void *join_work(void *arg)
{
    struct work *w = arg;
    void *volatile first = malloc(1);

    free(first);
    sem_post(&w->ready);
    pthread_mutex_lock(&w->gate);
    pthread_mutex_unlock(&w->gate);
    return do_work(w);
}

static int count_cores(void)
{
    cpu_set_t mine;

    if (known)
        return CPU_COUNT(&cores);
    return sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine)
                                                          : 1;
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int start_others(struct work *w, pthread_t *other, int most)
{
    int started = 0;

    pthread_mutex_lock(&w->gate);
    while (started < most &&
           ddp__thread_start(&other[started], join_work, w) == 0)
        started++;
    for (int i = 0; i < started; i++)
        while (sem_wait(&w->ready) < 0) /* a signal interrupted it */
            ;
    pthread_mutex_unlock(&w->gate);
    return started;
}

/* The work of a thread that does not start is left to the others. */
void ddp__threads_each(int n, int most, void (*fn)(void *arg, int i), void *arg)
{
    int threads = min(min(most, n), min(count_cores(), MOST)), started;
    struct work w = {
        .n = n, .fn = fn, .arg = arg, .gate = PTHREAD_MUTEX_INITIALIZER};
    pthread_t other[MOST];

    sem_init(&w.ready, 0, 0);
    started = start_others(&w, other, threads - 1);
    do_work(&w);
    while (started-- > 0)
        pthread_join(other[started], NULL);
    sem_destroy(&w.ready);
}

struct zeros {
    char *p;
    size_t size;
};

static void zero_piece(void *arg, int i)
{
    const struct zeros *z = arg;
    size_t at = (size_t)i * PIECE, left = z->size - at;

    memset(z->p + at, 0, left < PIECE ? left : PIECE);
}

void ddp__threads_zero(void *p, size_t size)
{
    int pieces = (int)((size + PIECE - 1) / PIECE);

    ddp__threads_each(pieces, pieces, zero_piece, &(struct zeros){p, size});
}
