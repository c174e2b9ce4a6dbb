/* pooling.cu - the kernels of pooling.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel.h"
#include "gpu/pooling.h"

DDP__POOLING_ITEMS(DDP__ITEM_KERNEL)
