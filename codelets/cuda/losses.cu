/* losses.cu - the kernels of losses.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel.h"
#include "gpu/losses.h"

DDP__LOSSES_BLOCKS(DDP__BLOCK_KERNEL)
DDP__LOSSES_PLAIN(DDP__PLAIN_KERNEL)
