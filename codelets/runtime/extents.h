/* extents.h - large blocks of main memory, in exact sizes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_EXTENTS_H
#define DDP_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>

/* What a block of size bytes takes. */
size_t ddp__extent_size(size_t size);

/* A block of what is free on a node, or of fresh memory; NULL: there is none.
 * Give it back to the node of its pages. */
void *ddp__extent_take(int node, size_t size);
void ddp__extent_give(int node, void *p, size_t size);

/* Whether it may be such a block: it lies where they do. */
bool ddp__extent_covers(const void *p);

/* Return all that is free to the system. */
void ddp__extents_trim(void);

#endif
