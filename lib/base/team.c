/* team.c - a kernel in parts, with which idle threads help
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Parts take some ten microseconds, so whoever waits spins.  A ticket names the
 * kernel and the parts that are left in one word: who has taken a part with it
 * knows that the kernel cannot end before that part, so part and arg are still
 * its own.
 *
 * The thread of the team begins with the first half of the parts and helpers
 * with the second, so that each mostly reads rows or channels that it has
 * written itself, in the layer before: what another core has written comes
 * slowly.
 */
#include "config.h"

#include <sched.h>
#include <stddef.h>
#include <time.h>

#include "base/team.h"

enum {
    MOST_PARTS = 8,
    FIELD = 16,
    MASK = (1 << FIELD) - 1,
    SPINS = 500,
    REST = 20000,
    PATIENCE = 50 /* rests without a part: at least 2.5 ms */
};

static _Thread_local struct ddp__team *current;

void ddp__team_enter(struct ddp__team *t)
{
    current = t;
}

void ddp__team_leave(void)
{
    atomic_store(&current->over, true);
    current = NULL;
}

/* The number of a part that is this thread's now; -1: none is left. */
static int take_part(struct ddp__team *t, bool helps)
{
    uint64_t ticket = atomic_load(&t->ticket);

    for (;;) {
        int next[] = {(int)(ticket & MASK), (int)(ticket >> FIELD & MASK)};
        int end[] = {(int)(ticket >> 2 * FIELD & MASK) / 2,
                     (int)(ticket >> 2 * FIELD & MASK)};
        int half = next[helps] < end[helps] ? helps : !helps;

        if (next[half] == end[half])
            return -1;
        if (atomic_compare_exchange_weak(&t->ticket, &ticket,
                                         ticket + (1 << half * FIELD)))
            return next[half];
    }
}

/* Run a part, if there is one. */
static bool run_part(struct ddp__team *t, bool helps)
{
    int i = take_part(t, helps), rc, none = 0;

    if (i < 0)
        return false;
    rc = t->part(t->arg, i);
    if (rc < 0 && atomic_compare_exchange_strong(&t->rc, &none, rc))
        t->error = ddp__error_save();
    atomic_fetch_add(&t->done, 1);
    return true;
}

/* Spin for as long as parts may last, then leave the core to other threads: it
 * may be theirs that is waited for. */
static void spin(int *times)
{
    static const struct timespec rest = {.tv_nsec = 50000};

#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
    if (++*times > REST)
        nanosleep(&rest, NULL);
    else if (*times % SPINS == 0)
        sched_yield();
}

static int run_alone(int n, int (*part)(void *arg, int i), void *arg)
{
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = part(arg, i);
    return rc;
}

int ddp__team_parts(size_t units, size_t least)
{
    size_t parts = 1;

    while (parts < MOST_PARTS && 2 * units >= 3 * parts * least)
        parts *= 2;
    return (int)parts;
}

int ddp__team_each(int n, int (*part)(void *arg, int i), void *arg)
{
    struct ddp__team *t = current;
    int times = 0;

    if (!t || n < 2)
        return run_alone(n, part, arg);
    current = NULL; /* parts have no parts */
    t->part = part;
    t->arg = arg;
    atomic_store(&t->done, 0);
    atomic_store(&t->ticket,
                 ((atomic_load(&t->ticket) >> 3 * FIELD) + 1) << 3 * FIELD |
                     (uint64_t)n << 2 * FIELD | (uint64_t)(n / 2) << FIELD);
    while (run_part(t, false))
        ;
    while (atomic_load(&t->done) < n)
        spin(&times);
    current = t;
    if (atomic_load(&t->rc) == 0)
        return 0;
    ddp__error_restore(&t->error);
    return atomic_exchange(&t->rc, 0);
}

void ddp__team_help(struct ddp__team *t)
{
    int times = 0;

    while (!atomic_load(&t->over) && times < REST + PATIENCE)
        if (run_part(t, true))
            times = 0;
        else
            spin(&times);
}
