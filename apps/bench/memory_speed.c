/* memory_speed.c - how fast the cores copy and read memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Past the caches: with more bytes than the third-level cache holds.
 */
#include "config.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory_speed.h"
#include "ways.h"

enum { LEAST_HALF = 32 << 20, MOST_HALF = 128 << 20, HUGE_PAGE = 2 << 20 };

/* Bytes that a core copies, to as many others: those of all cores are twice as
 * many as the third-level cache holds, if 256 MiB for each are enough. */
static size_t half;

static _Thread_local char *room; /* 2 half */

static size_t half_for(int cores)
{
    long l3 = 0;

#ifdef _SC_LEVEL3_CACHE_SIZE
    l3 = sysconf(_SC_LEVEL3_CACHE_SIZE) / cores;
#endif
    l3 = l3 < LEAST_HALF ? LEAST_HALF : l3 > MOST_HALF ? MOST_HALF : l3;
    return (size_t)l3 / HUGE_PAGE * HUGE_PAGE;
}

/* Large pages, as the library has them. */
static bool has_room(void)
{
    if (room)
        return true;
    if (!(room = aligned_alloc(HUGE_PAGE, 2 * half)))
        return false;
#ifdef MADV_HUGEPAGE
    madvise(room, 2 * half, MADV_HUGEPAGE); /* may be refused */
#endif
    /* Pages that nobody wrote are all the same one. */
    memset(room, 1, 2 * half);
    return true;
}

static double copy_bytes(void)
{
    if (!has_room())
        return 0;
    memcpy(room, room + half, half);
    return 2.0 * (double)half;
}

/* Narrow vectors would be what limits it. */
#define READER(name, ...)                                                      \
    WAYS_KERNEL __VA_ARGS__ static double name(void)                           \
    {                                                                          \
        typedef uint64_t wide __attribute__((vector_size(64)));                \
        wide a = {0}, b = {0}, c = {0}, d = {0};                               \
                                                                               \
        if (!has_room())                                                       \
            return 0;                                                          \
        for (size_t i = 0; i < 2 * half / sizeof(a); i += 4) {                 \
            const wide *p = (const wide *)(const void *)room + i;              \
                                                                               \
            a ^= p[0];                                                         \
            b ^= p[1];                                                         \
            c ^= p[2];                                                         \
            d ^= p[3];                                                         \
        }                                                                      \
        a ^= b ^ c ^ d;                                                        \
        __asm__ volatile("" : : "m"(a)); /* it is needed */                    \
        return 2.0 * (double)half;                                             \
    }
READER(read_plain)
#if defined(__x86_64__)
READER(read_avx2, __attribute__((target("avx2"))))
READER(read_avx512, __attribute__((target("avx512f"))))
#endif
#undef READER

static void free_room(void)
{
    free(room);
    room = NULL;
}

static const struct way copy_way = {"copy", ways_always, copy_bytes, free_room};
static const struct way read_ways[] = {
#if defined(__x86_64__)
    {"read, avx512", ways_avx512, read_avx512, free_room},
    {"read, avx2", ways_avx2, read_avx2, free_room},
#endif
    {"read", ways_always, read_plain, free_room},
};

int memory_measure(struct memory *m, int cores, double seconds)
{
    half = half_for(cores);
    if (ways_measure(&copy_way, cores, seconds, &m->copy) < 0 ||
        ways_measure(ways_best(read_ways), cores, seconds, &m->read) < 0)
        return -1;
    return m->copy > 0 && m->read > 0 ? 0 : -1;
}

double memory_seconds(const struct memory *m, double bytes, double read)
{
    double all = bytes / m->copy, inputs = read / m->read;

    return all > inputs ? all : inputs;
}
