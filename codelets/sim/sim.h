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

/* What has been seen so far. */
struct ddp__sim_report {
    int64_t lanes;   /* of all steps */
    int64_t split;   /* of these, lanes whose tasks were on several workers */
    size_t peak;     /* bytes: the most that any GPU's memory held at a time */
    double gpu_busy; /* seconds, of all GPUs together */
};
struct ddp__sim_report ddp__sim_report(void);

/* A GPU's task of so many seconds has ended on worker w. */
void ddp__sim_ended(const struct ddp__sched_tag *tag, int w, double seconds);

#endif
