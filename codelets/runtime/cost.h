/* cost.h - what a call does, and about how long it takes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COST_H
#define DDP_COST_H

#include "ops.h"

/* Multiply-adds times 2 of a convolution or dense call on n samples; 0 of any
 * other. */
double ddp__call_flops(const struct ddp__call *c, int n);

/* What a kind of worker is taken to do a second: for the estimates that
 * policies ask for, and in a simulation the time that tasks take. */
struct ddp__speed {
    double begin_us; /* before a kernel does anything */
    double flops, bytes;
};
extern struct ddp__speed ddp__speed[DDP_DEVICE_KINDS];

/* About how many microseconds a call takes on n samples. */
double ddp__cost_us(const struct ddp__call *c, int n, enum ddp_device kind);

#endif
