/* gpu_speed.c - what a GPU reaches in products and copies
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/context.h"
#include "runtime/cost.h"
#include "runtime/gpu_speed.h"

/* What large products in bf16 and long copies reach, which is less than what
 * the makers print: measured ones, of those that we know it of. */
static const struct {
    const char *part; /* of the device's name; the first that fits */
    double flops, bytes;
} known[] = {
    {"H200", 790e12, 4.3e12}, {"H100 PCIe", 500e12, 1.8e12},
    {"H100", 700e12, 3.0e12}, {"A100-SXM4-80GB", 270e12, 1.75e12},
    {"A100", 270e12, 1.4e12},
};

/* Of a multiprocessor in a cycle: bf16 by tensor cores, f32 by the others.
 * Source: CUDA C++ Programming Guide, arithmetic instructions; the makers'
 * papers on each architecture. */
static const struct {
    int architecture; /* and later ones */
    double bf16, f32;
} of_a_cycle[] = {
    {120, 1024, 256}, {100, 8192, 256}, {90, 4096, 256},
    {86, 1024, 256},  {80, 2048, 128},  {0, 1024, 128},
};

/* Of what the figures promise, that large products and copies reach; what a
 * kernel takes before it begins. */
static const double FLOPS_REACHED = 0.75, BYTES_REACHED = 0.88, LAUNCH_S = 5e-6;

static bool uses_tf32(enum ddp_dtype type)
{
    const char *text = getenv("DDP_TF32");

    return type == DDP_F32 && text && *text && strcmp(text, "0") != 0;
}

static double promised(const struct ddp_gpu_info *gpu, bool tensor_cores)
{
    int i = 0;

    while (of_a_cycle[i].architecture > gpu->architecture)
        i++;
    return gpu->units * gpu->clock_hz *
           (tensor_cores ? of_a_cycle[i].bf16 : of_a_cycle[i].f32);
}

int ddp_gpu_speed(const struct ddp_gpu_info *gpu, enum ddp_dtype type,
                  struct ddp_device_speed *speed)
{
    bool tf32 = uses_tf32(type), tensor_cores = type != DDP_F32 || tf32;
    int by_name = 0;

    if (!gpu || !speed)
        return ddp__fail_null(!gpu ? "gpu" : "speed");
    *speed = (struct ddp_device_speed){
        .launch_s = LAUNCH_S,
        .flops = promised(gpu, tensor_cores) * FLOPS_REACHED,
        .bytes_per_s = gpu->bytes_per_s * BYTES_REACHED};
    for (size_t i = 0; !by_name && i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(gpu->name, known[i].part)) {
            if (tensor_cores)
                speed->flops = known[i].flops;
            speed->bytes_per_s = known[i].bytes;
            by_name = 1;
        }
    if (tf32)
        speed->flops /= 2;
    return by_name;
}

double ddp__expected_us(const ddp_t *ddp, const struct ddp__call *c, int n,
                        enum ddp_dtype type)
{
    struct ddp__device d = *ddp->devices.used[0].device;
    struct ddp_device_speed s;

    if (ddp->accelerator && !d.simulated &&
        ddp_gpu_speed(&ddp->gpus.info[0], type, &s) >= 0 && s.flops > 0 &&
        s.bytes_per_s > 0)
        d.speed = (struct ddp__speed){1e6 * s.launch_s, s.flops, s.bytes_per_s};
    return ddp__cost_us(c, n, &d);
}

double ddp__gpu_link(const ddp_t *ddp)
{
    double mbs = 0;
    int first = -1;

    for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++) {
        if (!ddp->accelerator ||
            starpu_node_get_kind(i) != ddp->accelerator->memory)
            continue;
        if (first >= 0) {
            mbs = starpu_transfer_bandwidth((unsigned)first, i);
            break;
        }
        first = (int)i;
    }
    return mbs > 0 ? 1e6 * mbs : INFINITY;
}
