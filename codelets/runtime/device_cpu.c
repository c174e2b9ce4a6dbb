/* device_cpu.c - processor cores as a device, with the backends of two folders
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/backend.h"
#include "device.h"
#include "ops_times.h"
#include "ref/backend.h"

static void cpu_attach(struct starpu_codelet *cl, starpu_cpu_func_t run)
{
    cl->cpu_funcs[0] = run;
    cl->cpu_funcs_name[0] = "run";
}

static const struct ddp__backend *const backends[] = {&ddp__cpu, &ddp__ref,
                                                      NULL};

const struct ddp__device ddp__device_cpu = {
    .name = "CPU",
    .kind = DDP_CPU,
    .workers = STARPU_CPU_WORKER,
    .where = STARPU_CPU,
    .memory = STARPU_CPU_RAM,
    .speed = {.begin_us = 1, .flops = 100e9, .bytes = 10e9},
    .known_us = ddp__times_find,
    .backends = backends,
    .attach = cpu_attach,
};
