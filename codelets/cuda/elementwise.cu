/* elementwise.cu - the kernels of elementwise.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "gpu/elementwise.h"
#include "kernel.h"

DDP__ELEMENTWISE_ITEMS(DDP__ITEM_KERNEL)
