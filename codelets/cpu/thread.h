/* thread.h - memory of a worker's thread
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_THREAD_H
#define DDP_CPU_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Memory of this thread, 64-byte aligned, good until it asks again (or ends);
 * NULL: out of memory, and ddp__fail() has been called. */
void *ddp__scratch(size_t size);

/* Bytes that it takes then. */
size_t ddp__scratch_size(size_t size);

/* Round a size up so that what follows it in scratch is aligned too. */
static inline size_t ddp__align(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

/* Free this thread's memory. */
void ddp__scratch_free(void);

/* Memory for free(), on large pages where it is large; NULL: none left.  later:
 * when the kernel comes to it, after ddp__large_later(), and small ones before.
 */
void *ddp__large_alloc(size_t size, bool later);
void ddp__large_later(void *p, size_t size);

#endif
