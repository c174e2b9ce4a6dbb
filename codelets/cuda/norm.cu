/* norm.cu - the kernels of norm.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel.h"
#include "gpu/norm.h"

DDP__NORM_BLOCKS(DDP__BLOCK_KERNEL)
DDP__NORM_PLAIN(DDP__PLAIN_KERNEL)
