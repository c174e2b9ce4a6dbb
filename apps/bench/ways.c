/* ways.c - ways to measure what all cores do at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Time is that of the thread, so that a neighbour does not make a core look
 * slow.
 */
#include "config.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "common/app.h"
#include "common/cores.h"
#include "ways.h"

/* ---- what there is ------------------------------------------------------ */

bool ways_always(void)
{
    return true;
}

#if defined(__x86_64__)

bool ways_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool ways_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

#endif

const struct way *ways_best(const struct way *way)
{
    while (way->base && !way->there())
        way++;
    return way;
}

/* ---- all cores at once -------------------------------------------------- */

/* The threads wait until all have started, or one could not be started. */
enum { WAIT, GO, GIVE_UP };

struct core {
    const struct way *way;
    const int *signal; /* not owned */
    double seconds, rate;
    int nth;
};

static void *measure_core(void *arg)
{
    struct core *c = arg;
    double begin, now, ops = 0;
    int signal;

    app_pin(c->nth);
    while ((signal = __atomic_load_n(c->signal, __ATOMIC_ACQUIRE)) == WAIT)
        sched_yield();
    if (signal == GIVE_UP)
        return NULL;
    c->way->run(); /* the clock frequency takes a moment to rise */
    begin = app_thread_time();
    do {
        ops += c->way->run();
        now = app_thread_time();
    } while (now - begin < c->seconds);
    c->rate = ops / (now - begin);
    if (c->way->end)
        c->way->end();
    return NULL;
}

int ways_measure(const struct way *way, int cores, double seconds, double *rate)
{
    struct core *core = calloc((size_t)cores, sizeof(*core));
    pthread_t *thread = calloc((size_t)cores, sizeof(*thread));
    int n = 0, signal = WAIT;

    *rate = 0;
    for (; core && thread && n < cores; n++) {
        core[n] = (struct core){way, &signal, seconds, 0, n};
        if (pthread_create(&thread[n], NULL, measure_core, &core[n]))
            break;
    }
    __atomic_store_n(&signal, n == cores ? GO : GIVE_UP, __ATOMIC_RELEASE);
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        *rate += core[i].rate;
    }
    free(core);
    free(thread);
    return n == cores ? 0 : -1;
}
