/* updates.cu - the kernels of updates.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "kernel.h"
#include "gpu/updates.h"

DDP__UPDATES_PLAIN(DDP__PLAIN_KERNEL)
