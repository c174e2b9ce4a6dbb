/* device_list.h - the devices of this build
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEVICE_LIST_H
#define DDP_DEVICE_LIST_H

#include "device.h"

/* In order of preference, the CPU last, NULL at the end. */
extern const struct ddp__device *const ddp__devices[];

#endif
