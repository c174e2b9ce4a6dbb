/* array.c - arrays that double
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"

int ddp__array_grow(void **array, int n, size_t size)
{
    void *p;

    if (n & (n - 1))
        return 0; /* there is room up to the next power of two */
    if (!(p = realloc(*array, (size_t)(n ? 2 * n : 1) * size)))
        return ddp__fail(DDP_ENOMEM, "out of memory for an array of %d entries",
                         n + 1);
    *array = p;
    return 0;
}
