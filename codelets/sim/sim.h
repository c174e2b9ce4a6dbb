/* sim.h - simulated devices: kernels that take time and do nothing
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For a build against StarPU's SimGrid flavour only.  StarPU, the scheduling
 * policy, the task graph, dependencies, transfers and the memory of the GPUs
 * are the real ones; a task takes as long as ddp__cost_us() says.
 */
#ifndef DDP_SIM_H
#define DDP_SIM_H

#include "device.h"

/* Which kind trains, and how fast each of its devices is. */
void ddp__sim_speed(enum ddp_device kind, const struct ddp__speed *s);

/* One GPU takes so many times as long. */
void ddp__sim_slow(int number, double times);

/* Its next task takes so many seconds more. */
void ddp__sim_stall(int number, double seconds);

/* All of a simulation but the time. */
struct ddp_simulation ddp__sim_seen(void);

#endif
