/* norm.cu - the kernels of norm.h and norm_step.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel.h"
#include "gpu/norm_step.h"

DDP__NORM_BLOCKS(DDP__BLOCK_KERNEL)
DDP__NORM_PLAIN(DDP__PLAIN_KERNEL)
