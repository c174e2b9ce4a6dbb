/* numa.h - what CPU workers read from the memory of other NUMA nodes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NUMA_H
#define DDP_NUMA_H

#include "device.h"

enum { DDP__NUMA_MOST = 32 };

/* far_us: what a byte of another node takes longer. */
void ddp__numa_set(int nodes, double far_us);

/* A device's used(). */
void ddp__numa_used(int worker, uint64_t buffer, size_t size, double bytes,
                    enum ddp_access access);

/* A device's far_us(). */
double ddp__numa_far_us(int worker, uint64_t buffer, double bytes);

/* Fill in what was counted. */
void ddp__numa_seen(struct ddp_simulation *s);

#endif
