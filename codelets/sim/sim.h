/* sim.h - simulated devices: kernels that take time and do nothing
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For a build against StarPU's SimGrid flavour only.  StarPU, the scheduling
 * policy, the task graph, dependencies, transfers and the memory of the GPUs
 * are the real ones; a task takes as long as ddp__speed says.
 */
#ifndef DDP_SIM_H
#define DDP_SIM_H

#include "ops.h"
#include "runtime/scheduler.h"

extern const struct ddp__backend ddp__sim_cpu;

/* All of a simulation but the time. */
struct ddp_simulation ddp__sim_seen(void);

/* A GPU's task of so many seconds has ended on worker w. */
void ddp__sim_ended(const struct ddp__sched_tag *tag, int w, double seconds);

#endif
