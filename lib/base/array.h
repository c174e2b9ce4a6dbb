/* array.h - arrays that double
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ARRAY_H
#define DDP_ARRAY_H

#include <stddef.h>

/* Room for one more in an array of n entries of this size, which is only grown
 * by this function.  DDP_ENOMEM. */
int ddp__array_grow(void **array, int n, size_t size);

#endif
