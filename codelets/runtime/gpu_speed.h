/* gpu_speed.h - what a GPU reaches in products and copies
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GPU_SPEED_H
#define DDP_GPU_SPEED_H

#include "runtime/context.h"

/* About how many microseconds a call takes on n samples, on the device that
 * trains with activations of this type: as ddp__call_us(), but for a GPU as its
 * driver describes it. */
double ddp__expected_us(const ddp_t *ddp, const struct ddp__call *c, int n,
                        enum ddp_dtype type);

/* Bytes in a second from one GPU to another, as StarPU has measured; INFINITY:
 * it has not, or there is one. */
double ddp__gpu_link(const ddp_t *ddp);

#endif
