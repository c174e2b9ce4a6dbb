/* context.h - a started libddp
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CONTEXT_H
#define DDP_CONTEXT_H

#include "cuda/gpu.h"
#include "graph/params.h"
#include "runtime/topology.h"

struct ddp {
    int workers; /* that run kernels */
    int cpu_workers, gpu_workers;
    int most_cpus;  /* CPU workers that StarPU has room for; 0: enough */
    int segment_us; /* how long a task of a lane shall last at least; -1: as
                       the engine thinks right */
    int channels;   /* images are widened to a multiple; 0: they are not */
    struct ddp__gpus gpus;
    struct ddp__topology topology;
    struct ddp__params *params; /* bound ones; not owned */
    char describe[1536];
};

#endif
