/* missing.h - what stands in for memory that cannot be allocated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MISSING_H
#define DDP_MISSING_H

#include <stdbool.h>
#include <stddef.h>

/* Make room for a stand-in of this size, where devices may copy to it; false:
 * there is none. */
bool ddp__missing_reserve(size_t size);

/* An address for a buffer of main memory that could not be allocated; NULL:
 * devices may copy to it, and no memory was reserved.  To be given back. */
void *ddp__missing_take(size_t size, bool devices);

/* Give back an address; false: it is not of a stand-in. */
bool ddp__missing_give(const void *p);

/* Whether p stands in for memory; whether anything does. */
bool ddp__is_missing(const void *p);
bool ddp__missing_any(void);

#endif
