/* pool.h - main memory that keeps what is freed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step asks for the same sizes again and again, and fresh pages are slow.
 */
#ifndef DDP_POOL_H
#define DDP_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct ddp__topology;

void *ddp__pool_alloc(size_t size); /* NULL: there is none */
void ddp__pool_free(void *p, size_t size);
size_t ddp__pool_size(size_t size); /* bytes that a block takes on a device */

/* The same for buffers of tasks, which are pinned while devices fetch them. */
void *ddp__main_alloc(size_t size);
void ddp__main_free(void *p, size_t size);
size_t ddp__main_size(size_t size); /* bytes that one takes */
bool ddp__main_is_pinned(void);

/* Pin these buffers from now on, or no more (NULL).  Called while there are
 * none. */
void ddp__pool_pin(int (*pin)(void *p, size_t size), void (*unpin)(void *p));

/* On a machine of several NUMA nodes, give what is freed to threads of the node
 * that it is on (t: not owned; NULL: to all, while no task runs). */
void ddp__pool_nodes(const struct ddp__topology *t);
void ddp__pool_trim(void);     /* give back what is free */
size_t ddp__pool_in_use(void); /* bytes */
size_t ddp__pool_peak(void);   /* most bytes in use at a time */

#endif
