/* test_extents.c - large blocks of main memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Blocks of random sizes come and go.  Each holds its own number in each page,
 * so that two which overlap are noticed.  What they span at the end shows
 * whether free neighbours become one: if all are free, one block of all their
 * memory lies within it.  Other mappings, as those of malloc(), come in
 * between.
 */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "runtime/extents.h"
#include "tap.h"

enum { BLOCKS = 64, ROUNDS = 4000, PAGE = 4096, MOST = 4 << 20, OTHER = 16 };

static struct block {
    char *p;
    size_t size;
    unsigned number;
} block[BLOCKS];

static uint64_t state = 1;
static uintptr_t low = UINTPTR_MAX, high;

static size_t draw(size_t most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % most;
}

static void fill(struct block *b, unsigned number)
{
    uintptr_t at;

    b->size = 1 + draw(MOST);
    b->number = number;
    if (!(b->p = ddp__extent_take(0, b->size)))
        bail_out("out of memory");
    at = (uintptr_t)b->p;
    low = at < low ? at : low;
    high = at + b->size > high ? at + b->size : high;
    for (size_t i = 0; i + sizeof(number) <= b->size; i += PAGE)
        *(unsigned *)(void *)(b->p + i) = number;
}

/* Pages of a block that have another number; then the block is free. */
static int empty(struct block *b)
{
    int wrong = 0;

    for (size_t i = 0; b->p && i + sizeof(unsigned) <= b->size; i += PAGE)
        wrong += *(unsigned *)(void *)(b->p + i) != b->number;
    if (b->p)
        ddp__extent_give(0, b->p, b->size);
    b->p = NULL;
    return wrong;
}

/* Where the kernel likes: if that is where the next piece would be, this keeps
 * pieces apart. */
static void map_other(void)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS;

    if (mmap(NULL, MOST, PROT_NONE, how, -1, 0) == MAP_FAILED)
        bail_out("out of memory");
}

static bool is_mapped(void *p)
{
    return msync(p, PAGE, MS_ASYNC) == 0;
}

/* Half of the blocks are in use at a time, on average 64 MiB; so all would span
 * 8 GB if none were used twice. */
int main(void)
{
    size_t most = (size_t)BLOCKS * MOST;
    size_t size;
    int wrong = 0;
    char *all;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct block *b = &block[draw(BLOCKS)];

        if (i % OTHER == 0)
            map_other();
        if (b->p)
            wrong += empty(b);
        else
            fill(b, i);
    }
    for (int i = 0; i < BLOCKS; i++)
        wrong += empty(&block[i]);
    ok(wrong == 0, "no block overlaps another: %d pages do", wrong);
    ok(high - low <= most, "%zu bytes span %zu, at most %zu", most / 2,
       (size_t)(high - low), most);
    size = (size_t)(high - low) / PAGE * PAGE;
    all = ddp__extent_take(0, size);
    ok(all && (uintptr_t)all >= low - MOST && (uintptr_t)all < high,
       "free neighbours are one");
    ok(ddp__extent_covers(all) && ddp__extent_covers(all + size - 1) &&
           !ddp__extent_covers(&all),
       "blocks are known from other memory");
    ddp__extent_give(0, all, size);
    ok(is_mapped(all), "what is free is kept");
    ddp__extents_trim();
    ok(!is_mapped(all), "until it is returned");
    return done_testing();
}
