/* cost.h - what a call does, and about how long it takes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COST_H
#define DDP_COST_H

#include "device.h"

/* Multiply-adds times 2 of a convolution or dense call on n samples; 0 of any
 * other. */
double ddp__call_flops(const struct ddp__call *c, int n);

/* Bytes of an operand for n samples. */
double ddp__operand_bytes(const struct ddp__view *v, int n);

/* The part of its vectors that a call uses: a strip has less than all. */
double ddp__call_share(const struct ddp__call *c);

/* Bytes that a call on n samples reads and writes, each operand once. */
double ddp__call_bytes(const struct ddp__call *c, int n);
/* Of these, the bytes that it reads. */
double ddp__call_bytes_read(const struct ddp__call *c, int n);

/* About how many microseconds a call takes on n samples on a device. */
double ddp__cost_us(const struct ddp__call *c, int n,
                    const struct ddp__device *d);

#endif
