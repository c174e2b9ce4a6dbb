/* ways.h - ways to measure what all cores do at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WAYS_H
#define WAYS_H

#include <stdbool.h>

/* run() does some work and returns the operations of it, or the bytes. */
struct way {
    const char *base;
    bool (*there)(void);
    double (*run)(void);
    void (*end)(void); /* of a thread; or NULL */
};

/* Keep values in registers, in a debug build as well. */
#if defined(__clang__)
#define WAYS_KERNEL __attribute__((no_sanitize("address", "undefined")))
#else
#define WAYS_KERNEL                                                            \
    __attribute__((optimize("O2"), no_sanitize("address", "undefined")))
#endif

/* The first of a table that there is, or its end, which has no base. */
const struct way *ways_best(const struct way *way);

/* The sum of what so many cores do in a second, each for about `seconds`:
 * *rate.  -1 when threads cannot be started. */
int ways_measure(const struct way *way, int cores, double seconds,
                 double *rate);

bool ways_always(void);
#if defined(__x86_64__)
bool ways_avx2(void); /* with FMA */
bool ways_avx512(void);
#endif

#endif
