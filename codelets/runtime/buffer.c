/* buffer.c - the memory of tasks, as StarPU handles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdbool.h>

#include "base/error.h"
#include "runtime/borrowed.h"
#include "runtime/buffer.h"
#include "runtime/copies.h"
#include "runtime/extents.h"
#include "runtime/lost.h"
#include "runtime/missing.h"
#include "runtime/pool.h"

static _Atomic uint64_t next_id;

/* While anything is missing, the little memory that is left is for StarPU: it
 * aborts if it gets none for a task. */
static void *allocate_main(size_t size)
{
    void *p = NULL;

    if (!ddp__missing_any())
        p = ddp__main_alloc(size);
    return p ? p : ddp__missing_take(size, ddp__main_is_pinned());
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
        ddp__main_free((void *)v->ptr, v->elemsize);
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
           (ddp__main_is_pinned() || !ddp__extent_covers((void *)y->ptr) ||
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

    if (ddp__main_is_pinned())
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
