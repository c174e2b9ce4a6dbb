/* thread.c - threads that take no signals
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
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
};

static void *do_work(void *arg)
{
    struct work *w = arg;
    int i;

    while ((i = atomic_fetch_add(&w->next, 1)) < w->n)
        w->fn(w->arg, i);
    return NULL;
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

/* The work of a thread that does not start is left to the others. */
void ddp__threads_each(int n, int most, void (*fn)(void *arg, int i), void *arg)
{
    int threads = min(min(most, n), min(count_cores(), MOST)), started = 0;
    struct work w = {.n = n, .fn = fn, .arg = arg};
    pthread_t other[MOST];

    while (started < threads - 1 &&
           ddp__thread_start(&other[started], do_work, &w) == 0)
        started++;
    do_work(&w);
    while (started-- > 0)
        pthread_join(other[started], NULL);
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
