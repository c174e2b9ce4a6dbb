/* test_idle.c - workers without a task leave the cores to others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The system counts how often the threads of this process began to sleep, and
 * the time that they took of the cores.
 */
#include "config.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "ddp.h"
#include "tap.h"

enum { WORKERS = 2 };

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

int main(void)
{
    struct rusage a, b;
    double begin, all, used, sleeps;
    ddp_t *ddp;

    setenv("STARPU_NCPU", "2", 1);
    unsetenv("STARPU_SCHED");
    if (!(ddp = ddp_init(NULL)) || ddp_worker_count(ddp) != WORKERS)
        skip_all("no two CPU workers here");
    sleep_ms(300); /* the threads start, and workers spin and sleep for less */
    begin = clock_now();
    getrusage(RUSAGE_SELF, &a);
    sleep_ms(1500);
    getrusage(RUSAGE_SELF, &b);
    all = clock_now() - begin;
    sleeps = (double)(b.ru_nvcsw - a.ru_nvcsw);
    used = seconds_of(b.ru_utime) - seconds_of(a.ru_utime) +
           seconds_of(b.ru_stime) - seconds_of(a.ru_stime);
    /* Once in 20 ms each, which are 50 a second; 500 with 2 ms. */
    ok(sleeps < WORKERS * 200 * all,
       "%d idle workers wake up %.0f times a "
       "second",
       WORKERS, sleeps / all);
    /* One that spins takes all of a core, if no other program wants it. */
    ok(used < 0.1 * all, "and take %.2f %% of a core", 100 * used / all);
    ddp_finish(ddp);
    return done_testing();
}
