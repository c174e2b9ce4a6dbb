/* simulation.c - the public functions on simulated GPUs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "network.h"
#include "numa.h"
#include "ops_times.h"
#include "sim.h"

int ddp_simulation_set_speed(enum ddp_device kind,
                             const struct ddp_device_speed *s)
{
    if (kind != DDP_CPU && kind != DDP_CUDA)
        return ddp__fail(DDP_EINVAL,
                         "device %d cannot be simulated, expected DDP_CPU or "
                         "DDP_CUDA",
                         (int)kind);
    if (!(s->launch_s >= 0) || !(s->flops > 0) || !(s->bytes_per_s > 0))
        return ddp__fail(DDP_EINVAL,
                         "simulated device: launch_s %g, flops %g, bytes_per_s "
                         "%g, expected positive speeds",
                         s->launch_s, s->flops, s->bytes_per_s);
    ddp__sim_speed(kind, &(struct ddp__speed){.begin_us = 1e6 * s->launch_s,
                                              .flops = s->flops,
                                              .bytes = s->bytes_per_s});
    return DDP_OK;
}

static int fail_gpu(int gpu)
{
    return ddp__fail(DDP_EINVAL, "simulated GPU %d, expected 0 to %d", gpu,
                     DDP__MAX_GPUS - 1);
}

int ddp_simulation_set_slowness(int gpu, double times)
{
    if (gpu < 0 || gpu >= DDP__MAX_GPUS)
        return fail_gpu(gpu);
    if (!(times > 0))
        return ddp__fail(DDP_EINVAL,
                         "simulated GPU %d takes %g times as long, expected "
                         "more than 0",
                         gpu, times);
    ddp__sim_slow(gpu, times);
    return DDP_OK;
}

int ddp_simulation_stall(int gpu, double seconds)
{
    if (gpu < 0 || gpu >= DDP__MAX_GPUS)
        return fail_gpu(gpu);
    if (!(seconds >= 0))
        return ddp__fail(DDP_EINVAL,
                         "simulated GPU %d stops for %g s, expected at least 0",
                         gpu, seconds);
    ddp__sim_stall(gpu, seconds);
    return DDP_OK;
}

int ddp_simulation_set_nodes(int nodes, const struct ddp_network_speed *s)
{
    if (nodes < 1 || nodes > 1 << 16)
        return ddp__fail(DDP_EINVAL, "%d simulated nodes, expected 1 to %d",
                         nodes, 1 << 16);
    if (!(s->bytes_per_s > 0) || !(s->latency_s >= 0) || !(s->message_s >= 0) ||
        !(s->copy_bytes_per_s > 0) || !(s->copy_latency_s >= 0))
        return ddp__fail(DDP_EINVAL,
                         "simulated network: bytes_per_s %g, latency_s %g, "
                         "message_s %g, copy_bytes_per_s %g, copy_latency_s "
                         "%g, expected positive speeds, and times of at least "
                         "0",
                         s->bytes_per_s, s->latency_s, s->message_s,
                         s->copy_bytes_per_s, s->copy_latency_s);
    ddp__network_set(nodes, s);
    return DDP_OK;
}

int ddp_simulation_set_numa(int nodes, double far_bytes_per_s)
{
    if (nodes < 1 || nodes > DDP__NUMA_MOST)
        return ddp__fail(DDP_EINVAL,
                         "%d simulated NUMA nodes, expected 1 to %d", nodes,
                         DDP__NUMA_MOST);
    if (!(far_bytes_per_s >= 0))
        return ddp__fail(DDP_EINVAL, "far_bytes_per_s %g, expected at least 0",
                         far_bytes_per_s);
    ddp__numa_set(nodes, far_bytes_per_s > 0 ? 1e6 / far_bytes_per_s : 0);
    return DDP_OK;
}

int ddp_simulation_read(struct ddp_simulation *p)
{
    *p = ddp__sim_seen();
    p->unknown = ddp__times_unknown();
    p->now_s = 1e-6 * starpu_timing_now();
    return DDP_OK;
}
