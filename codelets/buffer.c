/* buffer.c - the memory of tasks: a pool behind StarPU's variable interface */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "buffer.h"

/* Sizes are rounded up to one of four steps per power of two; each class has
 * a list of free blocks, the last freed (and warmest) first. */
enum { CLASSES = 4 * 48, SMALLEST = 64, HUGE_PAGE = 2 << 20 };

struct block {
    struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *free_list[CLASSES];
static size_t in_use, peak;
static uint64_t next_id;

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

static void *fresh(size_t size)
{
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : 64;
    void *p = NULL;

    if (posix_memalign(&p, align, (size + 63) & ~(size_t)63) != 0)
        return NULL;
    if (size >= HUGE_PAGE)
        madvise(p, size, MADV_HUGEPAGE); /* fewer TLB misses; may be refused */
    return p;
}

void *ddp__pool_alloc(size_t size)
{
    size_t rounded;
    int c = class_of(size, &rounded);
    struct block *b;

    pthread_mutex_lock(&lock);
    if ((b = free_list[c]))
        free_list[c] = b->next;
    in_use += rounded;
    if (in_use > peak)
        peak = in_use;
    pthread_mutex_unlock(&lock);
    return b ? b : fresh(rounded);
}

void ddp__pool_free(void *p, size_t size)
{
    size_t rounded;
    int c = class_of(size, &rounded);
    struct block *b = p;

    if (!p)
        return;
    pthread_mutex_lock(&lock);
    b->next = free_list[c];
    free_list[c] = b;
    in_use -= rounded;
    pthread_mutex_unlock(&lock);
}

void ddp__pool_trim(void)
{
    pthread_mutex_lock(&lock);
    for (int c = 0; c < CLASSES; c++)
        while (free_list[c]) {
            struct block *b = free_list[c];

            free_list[c] = b->next;
            free(b);
        }
    pthread_mutex_unlock(&lock);
}

size_t ddp__pool_peak(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = peak;
    pthread_mutex_unlock(&lock);
    return n;
}

static starpu_ssize_t allocate(void *interface, unsigned node)
{
    struct starpu_variable_interface *v = interface;

    v->ptr = starpu_node_get_kind(node) == STARPU_CPU_RAM
                 ? (uintptr_t)ddp__pool_alloc(v->elemsize)
                 : starpu_malloc_on_node(node, v->elemsize);
    return v->ptr ? (starpu_ssize_t)v->elemsize : -ENOMEM;
}

static void release(void *interface, unsigned node)
{
    struct starpu_variable_interface *v = interface;

    if (starpu_node_get_kind(node) == STARPU_CPU_RAM)
        ddp__pool_free((void *)v->ptr, v->elemsize);
    else
        starpu_free_on_node(node, v->ptr, v->elemsize);
}

/* StarPU's variable, but for where its bytes come from. */
static struct starpu_data_interface_ops *interface_ops(void)
{
    static struct starpu_data_interface_ops ops;

    if (!ops.allocate_data_on_node) {
        ops = starpu_interface_variable_ops;
        ops.free_data_on_node = release;
        ops.allocate_data_on_node = allocate;
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

    starpu_data_register(&b->h, ptr ? STARPU_MAIN_RAM : -1, &v,
                         interface_ops());
    b->id = ++next_id;
    b->version = 0;
    b->size = size;
}

void ddp__handle_unregister(struct ddp__handle *b)
{
    if (b->h)
        starpu_data_unregister(b->h);
    b->h = NULL;
}

void ddp__handle_drop(struct ddp__handle *b)
{
    starpu_data_invalidate_submit(b->h);
}
