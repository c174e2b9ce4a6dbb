/* dummy.h - what the dummy devices have been asked to do
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DUMMY_H
#define DUMMY_H

#include <stdatomic.h>

#include "device.h"

/* A kind that ddp.h has no name for. */
#define DUMMY ((enum ddp_device)(DDP_DEVICE_KINDS - 1))

extern struct dummy_calls {
    int configured; /* devices, the last time */
    int started, stopped;
    atomic_int dense_fwd; /* kernels */
} dummy_calls;

#endif
