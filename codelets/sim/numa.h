/* numa.h - what CPU workers read from the memory of other NUMA nodes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NUMA_H
#define DDP_NUMA_H

#include "device.h"

enum { DDP__NUMA_MOST = 32 };

/* far_us: what a byte of another node takes longer. */
void ddp__numa_set(int nodes, double far_us);

/* A device's is_far(), far_us() and used(). */
bool ddp__numa_is_far(int worker, uint64_t buffer);
double ddp__numa_far_us(double bytes);
void ddp__numa_used(int worker, uint64_t buffer, size_t size, double bytes,
                    enum ddp_access access, bool was_far);

/* Fill in what was counted. */
void ddp__numa_seen(struct ddp_simulation *s);

#endif
