/* buffer.c - the memory of tasks: a pool behind StarPU's variable interface
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "runtime/borrowed.h"
#include "runtime/buffer.h"
#include "runtime/copies.h"
#include "runtime/extents.h"
#include "runtime/lost.h"
#include "runtime/missing.h"
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
static _Atomic uint64_t next_id;

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

size_t ddp__main_size(size_t size)
{
    int c;

    return size ? size_in(pin ? &pinned : &plain, size, &c) : 0;
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

/* While anything is missing, the little memory that is left is for StarPU: it
 * aborts if it gets none for a task. */
static void *allocate_main(size_t size)
{
    void *p = NULL;

    if (!ddp__missing_any())
        p = pool_alloc(pin ? &pinned : &plain, size);
    return p ? p : ddp__missing_take(size, pin != NULL);
}

/* On a device too, sizes are those of the classes: StarPU keeps what is freed
 * there, and another layer's buffer of the same class takes it. */
static void *allocate_device(unsigned node, size_t size)
{
    void *p = (void *)starpu_malloc_on_node(node, size);

    if (!p && ddp__lost_any())
        return ddp__missing_take(0, true); /* no byte of it is used */
    if (!p)
        return ddp__borrowed_take(size);
    ddp__borrowed_progress();
    return p;
}

static starpu_ssize_t allocate_on_node(void *interface, unsigned node)
{
    struct starpu_variable_interface *v = interface;
    size_t size = v->elemsize;

    if (starpu_node_get_kind(node) == STARPU_CPU_RAM)
        v->ptr = (uintptr_t)allocate_main(size);
    else
        v->ptr = (uintptr_t)allocate_device(node, size = ddp__pool_size(size));
    v->dev_handle = v->ptr;
    v->offset = 0;
    return v->ptr ? (starpu_ssize_t)size : -ENOMEM;
}

static void free_on_node(void *interface, unsigned node)
{
    struct starpu_variable_interface *v = interface;

    if (ddp__missing_give((void *)v->ptr) || ddp__borrowed_give((void *)v->ptr))
        return;
    if (starpu_node_get_kind(node) == STARPU_CPU_RAM)
        pool_free(pin ? &pinned : &plain, (void *)v->ptr, v->elemsize);
    else
        starpu_free_on_node(node, v->ptr, ddp__pool_size(v->elemsize));
}

#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
static uint32_t alloc_footprint(starpu_data_handle_t h)
{
    size_t size = ddp__pool_size(starpu_variable_get_elemsize(h));

    return starpu_hash_crc32c_be_n(&size, sizeof(size), 0);
}

/* Whether x may have y's memory.  Large blocks of main memory have no class. */
static int alloc_compare(void *a, void *b)
{
    const struct starpu_variable_interface *x = a, *y = b;

    return ddp__pool_size(x->elemsize) == ddp__pool_size(y->elemsize) &&
           !ddp__is_borrowed((void *)y->ptr) &&
           (pin || !ddp__extent_covers((void *)y->ptr) ||
            ddp__extent_size(x->elemsize) == ddp__extent_size(y->elemsize));
}

/* The other buffer's memory, but our own size. */
static void reuse_data_on_node(void *interface, const void *cached,
                               unsigned node)
{
    struct starpu_variable_interface *to = interface;
    const struct starpu_variable_interface *from = cached;

    (void)node;
    to->ptr = from->ptr;
    to->dev_handle = from->dev_handle;
    to->offset = from->offset;
}
#endif

/* StarPU's variable, but for where its bytes come from. */
static struct starpu_data_interface_ops *interface_ops(void)
{
    static struct starpu_data_interface_ops ops;

    if (!ops.allocate_data_on_node) {
        ops = starpu_interface_variable_ops;
        ops.copy_methods = &ddp__copy_methods;
        ops.free_data_on_node = free_on_node;
#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
        ops.alloc_footprint = alloc_footprint;
        ops.alloc_compare = alloc_compare;
        ops.reuse_data_on_node = reuse_data_on_node;
#endif
        ops.allocate_data_on_node = allocate_on_node;
    }
    return &ops;
}

void ddp__handle_register(struct ddp__handle *b, void *ptr, size_t size)
{
    struct starpu_variable_interface v = {
        .id = STARPU_VARIABLE_INTERFACE_ID,
        .ptr = (uintptr_t)ptr,
        .dev_handle = (uintptr_t)ptr,
        .elemsize = size,
    };

    if (pin)
        ddp__missing_reserve(size);
    starpu_data_register(&b->h, ptr ? STARPU_MAIN_RAM : -1, &v,
                         interface_ops());
    b->id = ++next_id;
    b->version = b->common = 0;
    b->size = size;
}

void ddp__handle_unregister(struct ddp__handle *b)
{
    if (b->h)
        starpu_data_unregister(b->h);
    b->h = NULL;
}

void ddp__handle_unregister_later(struct ddp__handle *b)
{
    starpu_data_unregister_submit(b->h);
    b->h = NULL;
}

void ddp__handle_drop(struct ddp__handle *b)
{
    starpu_data_invalidate_submit(b->h);
}

int ddp__buffer_fail(size_t size)
{
    return ddp__fail(DDP_ENOMEM,
                     "out of memory for a buffer of %zu bytes, with %zu in "
                     "use: use a smaller sub_batch, or fewer lanes or workers",
                     size, ddp__pool_in_use());
}

int ddp__device_buffer_fail(size_t size)
{
    return ddp__fail(DDP_ENOMEM,
                     "out of device memory for a buffer of %zu bytes, although "
                     "there was room before the first step: another program "
                     "may use the device; if not, use a smaller sub_batch, or "
                     "fewer lanes",
                     size);
}

/* Whether a node's copy is in memory that stands in for the node's own. */
static bool lacks_memory(starpu_data_handle_t h, unsigned node)
{
    struct starpu_variable_interface *v;

    if (!starpu_data_test_if_allocated_on_node(h, node))
        return false;
    v = starpu_data_get_interface_on_node(h, node);
    return ddp__is_missing((void *)v->ptr) || ddp__is_borrowed((void *)v->ptr);
}

void ddp__handle_drop_missing(struct ddp__handle *b)
{
    for (unsigned i = 0; b->h && i < starpu_memory_nodes_get_count(); i++)
        if (lacks_memory(b->h, i)) {
            ddp__handle_drop(b);
            return;
        }
}

/* By this rank alone, as far as anybody knows. */
static void count_write(struct ddp__handle *b)
{
    b->version++;
    b->common = 0;
}

void *ddp__handle_open(struct ddp__handle *b, bool write, const char *what)
{
    void *p;

    if (starpu_data_acquire(b->h, write ? STARPU_RW : STARPU_R) != 0) {
        ddp__fail(DDP_EINVAL, "%s cannot be used from inside a task", what);
        return NULL;
    }
    if (write)
        count_write(b);
    p = starpu_data_get_local_ptr(b->h);
    if (!ddp__is_missing(p) && !ddp__lost_any())
        return p;
    starpu_data_release(b->h);
    if (ddp__lost_check() == 0)
        ddp__buffer_fail(b->size);
    return NULL;
}

int ddp__handle_fill(struct ddp__handle *b, const void *data)
{
    void *p;

    if (starpu_data_acquire(b->h, STARPU_W) != 0)
        return ddp__fail(DDP_EINVAL,
                         "data cannot be replaced from inside a task");
    count_write(b);
    p = starpu_data_get_local_ptr(b->h);
    if (!ddp__is_missing(p))
        memcpy(p, data, b->size);
    starpu_data_release(b->h);
    return ddp__is_missing(p) ? ddp__buffer_fail(b->size) : 0;
}

void ddp__handle_acquire(struct ddp__handle *b, int node, bool read, bool write,
                         void (*ready)(void *arg), void *arg)
{
    if (write) /* now: another thread may free b once it is ready */
        count_write(b);
    starpu_data_acquire_on_node_cb(b->h, node,
                                   read && write ? STARPU_RW
                                   : write       ? STARPU_W
                                                 : STARPU_R,
                                   ready, arg);
}

void *ddp__handle_memory(const struct ddp__handle *b, int node)
{
    const struct starpu_variable_interface *v =
        starpu_data_get_interface_on_node(b->h, (unsigned)node);

    return ddp__is_missing((void *)v->ptr) ? NULL : (void *)v->ptr;
}

void ddp__handle_release(struct ddp__handle *b, int node)
{
    starpu_data_release_on_node(b->h, node);
}

void ddp__handle_close(struct ddp__handle *b)
{
    starpu_data_release(b->h);
}
