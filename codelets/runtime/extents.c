/* extents.c - large blocks of main memory, in exact sizes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The buffers of a step have many sizes, and few are in use at once.  A block
 * is cut from the smallest free extent that has room, and neighbours that are
 * free are one extent again, so that a step needs little more memory than is in
 * use at its peak.  With a list for each size (buffer.c) EfficientNetV2-S,
 * ResNet-50 and VGG-16 took 9, 15 and 9 to 21 % more.
 *
 * Fresh memory comes in pieces, and what is free at the end of one is of use
 * with the beginning of the next: so a node's pieces lie side by side, far from
 * where the kernel puts other mappings.  Where it puts them, between stacks and
 * weights, EfficientNetV2-S touched 3957 MiB for 3713 that were in use; side by
 * side it is 3720.
 *
 * An extent begins with its header: its first page was in use before, or is
 * the only one of a fresh piece that is touched here.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "runtime/devices.h"
#include "runtime/extents.h"
#include "runtime/topology.h"

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, FRESH = 32 << 20 };

/* Address space that must be left after a piece: StarPU aborts if it does not
 * get the few KiB of a task or a buffer. */
enum { LEFT = 32 << 20 };

struct extent {
    struct extent *next; /* at a higher address */
    size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct extent *first_of[DDP__MAX_NODES];
static uintptr_t next_of[DDP__MAX_NODES]; /* behind the last piece; 0: none */
static _Atomic uintptr_t lowest, highest; /* all was mapped between these */

size_t ddp__extent_size(size_t size)
{
    return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static bool touch(const struct extent *low, const struct extent *high)
{
    return (const char *)low + low->size == (const char *)high;
}

/* Under the lock, as all that changes lists. */
static void add_extent(struct extent **at, void *p, size_t size)
{
    struct extent *e = p, *before = NULL;

    for (; *at && (uintptr_t)*at < (uintptr_t)p; at = &(*at)->next)
        before = *at;
    *e = (struct extent){*at, size};
    *at = e;
    if (e->next && touch(e, e->next)) {
        e->size += e->next->size;
        e->next = e->next->next;
    }
    if (before && touch(before, e)) {
        before->size += e->size;
        before->next = e->next;
    }
}

/* The first of the smallest that have room. */
static struct extent **find_extent(struct extent **at, size_t size)
{
    struct extent **best = NULL;

    for (; *at; at = &(*at)->next)
        if ((*at)->size >= size && (!best || (*at)->size < (*best)->size))
            best = at;
    return best;
}

static void *cut_extent(struct extent **at, size_t size)
{
    struct extent *e = *at, *rest = (void *)((char *)e + size);

    if (e->size > size) {
        *rest = (struct extent){e->next, e->size - size};
        *at = rest;
    } else {
        *at = e->next;
    }
    return e;
}

/* Where a node's next piece should be.  The first is 104 TiB and a TiB for each
 * node from the beginning, between programs and libraries; a kernel that has
 * less, or something there, takes another place. */
static void *place_of(int node)
{
    uint64_t first = (uint64_t)(104 + node) << 40;

    return (void *)(next_of[node] ? next_of[node] : (uintptr_t)first);
}

/* In huge pages, which need fewer entries of the TLB; *size grows to them. */
static void *map_fresh(int node, size_t *size)
{
    const int access = PROT_READ | PROT_WRITE;
    const int how = MAP_PRIVATE | MAP_ANONYMOUS;
    size_t whole = (*size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1), before;
    char *map, *p;

    if (whole < FRESH)
        whole = FRESH;
    /* cppcheck-suppress invalidFunctionArg ; anonymous memory has no file */
    map = mmap(place_of(node), whole + HUGE_PAGE + LEFT, access, how, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    before = -(uintptr_t)map % HUGE_PAGE;
    p = map + before;
    if (before)
        munmap(map, before);
    munmap(p + whole, HUGE_PAGE - before + LEFT);
    if (!ddp__devices_simulated())        /* only headers are touched then */
        madvise(p, whole, MADV_HUGEPAGE); /* may be refused */
    next_of[node] = (uintptr_t)p + whole;
    if (!lowest || (uintptr_t)p < lowest)
        lowest = (uintptr_t)p;
    if (next_of[node] > highest)
        highest = next_of[node];
    *size = whole;
    return p;
}

void *ddp__extent_take(int node, size_t size)
{
    struct extent **first = &first_of[node], **at;
    size_t fresh;
    void *p;

    size = fresh = ddp__extent_size(size);
    pthread_mutex_lock(&lock);
    at = find_extent(first, size);
    if (!at && (p = map_fresh(node, &fresh))) {
        add_extent(first, p, fresh);
        at = find_extent(first, size);
    }
    p = at ? cut_extent(at, size) : NULL;
    pthread_mutex_unlock(&lock);
    return p;
}

bool ddp__extent_covers(const void *p)
{
    return (uintptr_t)p >= lowest && (uintptr_t)p < highest;
}

void ddp__extent_give(int node, void *p, size_t size)
{
    pthread_mutex_lock(&lock);
    add_extent(&first_of[node], p, ddp__extent_size(size));
    pthread_mutex_unlock(&lock);
}

void ddp__extents_trim(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < DDP__MAX_NODES; i++)
        while (first_of[i]) {
            struct extent *e = first_of[i];

            first_of[i] = e->next;
            munmap(e, e->size);
        }
    pthread_mutex_unlock(&lock);
}
