/* context.h - a started libddp
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CONTEXT_H
#define DDP_CONTEXT_H

#include "runtime/devices.h"
#include "runtime/net.h"
#include "runtime/starpu_home.h"
#include "runtime/task_group.h"
#include "runtime/topology.h"

/* Something that uses a context and must be unbound before it ends. */
struct ddp__bound {
    struct ddp__bound *next;
    void (*unbind)(struct ddp__bound *b); /* calls ddp__context_unbind() */
};

struct ddp {
    int workers; /* that run kernels */
    int cpu_workers, gpu_workers;
    int asked_cpus; /* CPU workers that the user asked for; -1: did not */
    int asked_gpus; /* of one kind, or DDP_ALL */
    int most_cpus;  /* CPU workers that StarPU has room for; 0: enough */
    int segment_us; /* how long a task of a lane shall last at least; -1: as
                       the engine thinks right */
    int early;    /* updates begin before a step is known to be applied: 0: no,
                     1: yes, -1: as the engine thinks right */
    int channels; /* images are widened to a multiple; 0: they are not */
    const struct ddp__device *accelerator; /* with workers; NULL: none */
    struct ddp__gpus gpus;                 /* of its kind */
    struct ddp__devices devices;
    struct ddp__topology topology;
    struct ddp__starpu_home home;
    struct ddp__bound *bound; /* not owned */
    struct ddp__pending pending;
    struct ddp__status status;
    struct ddp__net net; /* the other ranks */
    char describe[2048];
};

void ddp__context_bind(ddp_t *ddp, struct ddp__bound *b);
void ddp__context_unbind(ddp_t *ddp, struct ddp__bound *b);

#endif
