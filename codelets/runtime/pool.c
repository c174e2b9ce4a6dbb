/* pool.c - main memory that keeps what is freed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/extents.h"
#include "runtime/pool.h"
#include "runtime/topology.h"

/* Sizes are rounded up to one of four steps per power of two; each class has
 * a list of free blocks, the last freed (and warmest) first.  Large blocks that
 * are not pinned have their exact sizes: see extents.c. */
enum {
    CLASSES = 4 * 48,
    SMALLEST = 64,
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    LARGE = 1 << 20,
    EXACT = -1 /* instead of a class */
};

struct free_block {
    struct free_block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool {
    struct free_block *free_list[DDP__MAX_NODES][CLASSES];
} plain, pinned; /* the latter while there are devices that fetch it */
static int (*pin)(void *p, size_t size); /* NULL: no such devices */
static void (*unpin)(void *p);
static const struct ddp__topology *machine; /* NULL: of one node */
static size_t in_use, peak;

static int class_of(size_t size, size_t *rounded)
{
    size_t base = SMALLEST;
    int c = 0;

    while (base * 2 <= size) {
        base *= 2;
        c += 4;
    }
    for (int i = 0; i < 4; i++, c++)
        if ((*rounded = base + (size_t)i * base / 4) >= size)
            return c;
    *rounded = base * 2;
    return c;
}

/* Where memory cannot be pinned, transfers are slower, but they work. */
static void *allocate_fresh(bool to_pin, size_t size)
{
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : 64;
    void *p = NULL;

    if (to_pin && align < PAGE)
        align = PAGE; /* pages are pinned whole */
    size = (size + 63) & ~(size_t)63;
    if (to_pin)
        size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (posix_memalign(&p, align, size) != 0)
        return NULL;
    if (size >= HUGE_PAGE)
        madvise(p, size, MADV_HUGEPAGE); /* fewer TLB misses; may be refused */
    if (to_pin)
        pin(p, size);
    return p;
}

/* A fresh block's pages come from the node of the thread that first writes
 * them, which is the worker that asks for it.  It is for workers of that node
 * again: the kernel says where large ones are, and for small ones, whose pages
 * are shared, asking would take longer than it saves. */
static int node_of(const void *p, size_t size)
{
    if (!machine)
        return 0;
    return p && size >= 16 * PAGE ? ddp__topology_node_at(machine, p)
                                  : ddp__topology_node_here(machine);
}

static void list_trim(struct free_block **list, bool is_pinned)
{
    while (*list) {
        struct free_block *b = *list;

        *list = b->next;
        if (is_pinned)
            unpin(b);
        free(b);
    }
}

static void pool_trim(struct pool *p)
{
    if (p == &plain)
        ddp__extents_trim();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < DDP__MAX_NODES; i++)
        for (int c = 0; c < CLASSES; c++)
            list_trim(&p->free_list[i][c], p == &pinned);
    pthread_mutex_unlock(&lock);
}

/* A free block of the class, or NULL. */
static void *take_free(struct pool *from, int c)
{
    int node = node_of(NULL, 0);
    struct free_block *b;

    pthread_mutex_lock(&lock);
    if ((b = from->free_list[node][c]))
        from->free_list[node][c] = b->next;
    pthread_mutex_unlock(&lock);
    return b;
}

static void count_use(size_t size)
{
    pthread_mutex_lock(&lock);
    in_use += size;
    if (in_use > peak)
        peak = in_use;
    pthread_mutex_unlock(&lock);
}

/* What a block takes, and its class; EXACT: it has none. */
static size_t size_in(const struct pool *p, size_t size, int *c)
{
    size_t rounded;

    *c = class_of(size, &rounded);
    if (p == &pinned || size < LARGE)
        return rounded;
    *c = EXACT;
    return ddp__extent_size(size);
}

static void *take_any(struct pool *from, size_t size, int c)
{
    void *p;

    if (c == EXACT)
        return ddp__extent_take(node_of(NULL, 0), size);
    p = take_free(from, c);
    return p ? p : allocate_fresh(from == &pinned, size);
}

static void *pool_alloc(struct pool *from, size_t size)
{
    int c;
    size_t whole = size_in(from, size, &c);
    void *p = take_any(from, whole, c);

    if (!p) {
        pool_trim(&plain); /* blocks of other sizes may make room */
        pool_trim(&pinned);
        p = take_any(from, whole, c);
    }
    if (p)
        count_use(whole);
    return p;
}

static void pool_free(struct pool *to, void *p, size_t size)
{
    int c, node;
    size_t whole = size_in(to, size, &c);
    struct free_block *b = p;

    if (!p)
        return;
    node = node_of(p, size);
    if (c == EXACT)
        ddp__extent_give(node, p, size);
    pthread_mutex_lock(&lock);
    if (c != EXACT) {
        b->next = to->free_list[node][c];
        to->free_list[node][c] = b;
    }
    in_use -= whole;
    pthread_mutex_unlock(&lock);
}

size_t ddp__pool_size(size_t size)
{
    size_t rounded;

    class_of(size, &rounded);
    return size ? rounded : 0;
}

void *ddp__pool_alloc(size_t size)
{
    return pool_alloc(&plain, size);
}

void ddp__pool_free(void *p, size_t size)
{
    pool_free(&plain, p, size);
}

void ddp__pool_trim(void)
{
    pool_trim(&plain);
}

/* That of tasks' buffers. */
static struct pool *main_pool(void)
{
    return pin ? &pinned : &plain;
}

size_t ddp__main_size(size_t size)
{
    int c;

    return size ? size_in(main_pool(), size, &c) : 0;
}

void *ddp__main_alloc(size_t size)
{
    return pool_alloc(main_pool(), size);
}

void ddp__main_free(void *p, size_t size)
{
    pool_free(main_pool(), p, size);
}

bool ddp__main_is_pinned(void)
{
    return pin;
}

void ddp__pool_pin(int (*do_pin)(void *p, size_t size), void (*undo)(void *p))
{
    if (pin)
        pool_trim(&pinned);
    pin = do_pin;
    unpin = undo;
}

void ddp__pool_nodes(const struct ddp__topology *t)
{
    machine = t && t->nodes > 1 ? t : NULL;
}

size_t ddp__pool_in_use(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = in_use;
    pthread_mutex_unlock(&lock);
    return n;
}

size_t ddp__pool_peak(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = peak;
    pthread_mutex_unlock(&lock);
    return n;
}
