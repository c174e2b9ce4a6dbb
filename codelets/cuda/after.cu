/* after.cu - the kernels of after.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "gpu/after.h"
#include "kernel.h"

DDP__AFTER_ITEMS(DDP__ITEM_KERNEL)
DDP__AFTER_PLAIN(DDP__PLAIN_KERNEL)
