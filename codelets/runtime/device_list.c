/* device_list.c - the devices of this build
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/device_list.h"

#define DDP__DEVICE(device) extern const struct ddp__device device;
#include "runtime/device_rows.h"
#undef DDP__DEVICE

#define DDP__DEVICE(device) &device,
const struct ddp__device *const ddp__devices[] = {
#include "runtime/device_rows.h"
    NULL};
