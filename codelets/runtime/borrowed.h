/* borrowed.h - main memory in place of device memory that cannot be allocated
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BORROWED_H
#define DDP_BORROWED_H

#include "ops_backend.h"

/* Who has such memory; NULL: nobody.  Nothing is borrowed. */
void ddp__borrowed_from(const struct ddp__backend *b);

/* A task on a device has ended, or an allocation there has succeeded. */
void ddp__borrowed_progress(void);

/* A device has no memory of this size.  NULL: ask it again, some may become
 * free, or there is no main memory either.  Else to be given back. */
void *ddp__borrowed_take(size_t size);

/* Whether p is borrowed; give it back (false: it is not). */
bool ddp__is_borrowed(const void *p);
bool ddp__borrowed_give(void *p);

#endif
