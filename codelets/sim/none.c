/* none.c - the functions on simulated GPUs where GPUs are real
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"

static int not_simulated(void)
{
    return ddp__fail(DDP_ENODEV,
                     "this build of libddp does not simulate GPUs: configure "
                     "--with-simgrid, and use the program ddp-predict");
}

int ddp_simulation_set_speed(enum ddp_device kind,
                             const struct ddp_device_speed *s)
{
    (void)kind;
    (void)s;
    return not_simulated();
}

int ddp_simulation_set_slowness(int gpu, double times)
{
    (void)gpu;
    (void)times;
    return not_simulated();
}

int ddp_simulation_stall(int gpu, double seconds)
{
    (void)gpu;
    (void)seconds;
    return not_simulated();
}

int ddp_simulation_set_nodes(int nodes, const struct ddp_network_speed *s)
{
    (void)nodes;
    (void)s;
    return not_simulated();
}

int ddp_simulation_set_numa(int nodes, double far_bytes_per_s)
{
    (void)nodes;
    (void)far_bytes_per_s;
    return not_simulated();
}

int ddp_simulation_read(struct ddp_simulation *p)
{
    (void)p;
    return not_simulated();
}
