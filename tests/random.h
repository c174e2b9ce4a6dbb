/* random.h - arrays of random numbers, the same in every run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

/* Between -1 and 1. */
static inline double random_uniform(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11 << 11) / 0x1p63;
}

static inline float random_float(void)
{
    return (float)random_uniform();
}

/* In whole lines of 64 bytes; each byte is the same until it is written. */
static inline void *new_array(size_t count, size_t size)
{
    void *p = aligned_alloc(64, (count * size + 63) / 64 * 64);

    if (!p)
        bail_out("out of memory");
    memset(p, 0x5a, count * size);
    return p;
}

static inline float *random_floats(size_t count)
{
    float *p = new_array(count, sizeof(*p));

    for (size_t i = 0; i < count; i++)
        p[i] = random_float();
    return p;
}

/* Bytes that end where a page begins that nobody may read, within *map, which
 * is to be unmapped. */
static inline void *new_at_edge(size_t size, void **map, size_t *mapped)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size + page - 1) / page * page;

    *mapped = pages + page;
    *map = mmap(NULL, *mapped, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*map == MAP_FAILED ||
        mprotect((char *)*map + pages, page, PROT_NONE) < 0)
        bail_out("no pages");
    return (char *)*map + pages - size;
}

#endif
