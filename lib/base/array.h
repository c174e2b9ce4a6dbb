/* array.h - arrays that double
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ARRAY_H
#define DDP_ARRAY_H

#include <stddef.h>

/* Make room for one more entry in an array of n entries of this size, which
 * only this function grows.  DDP_ENOMEM. */
int ddp__array_grow(void **array, int n, size_t size);

#endif
