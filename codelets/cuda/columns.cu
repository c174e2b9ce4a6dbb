/* columns.cu - the kernels of columns.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "gpu/columns.h"
#include "kernel.h"

DDP__COLUMNS_BLOCKS(DDP__BLOCK_KERNEL)
