/* roof.c - what a GPU's arithmetic and memory allow
 *
 * A kernel takes as long as its arithmetic or its bytes do, whichever is more,
 * and kernels run one after another.  Every tensor is read and written as few
 * times as kernels need that keep nothing from one to the next:
 *
 *     convolution, dense   x and y; the same for each of its two gradients
 *     batch norm           x in, y out; x and dy in, dx out (what is needed
 *                          twice is kept on the chip)
 *     pooling              x and y, forward and backward
 *     update               20 bytes a parameter, once a step
 *
 * All else (activations, sums, masks) rides along with these.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <string.h>

#include "roof.h"

/* ---- devices ------------------------------------------------------------ */

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

/* Of what the figures promise, that large products and copies reach. */
static const double FLOPS_REACHED = 0.75, BYTES_REACHED = 0.88;

/* bf16 false: without tensor cores. */
static double promised(const struct ddp_gpu_info *gpu, bool bf16)
{
    int i = 0;

    while (of_a_cycle[i].architecture > gpu->architecture)
        i++;
    return gpu->units * gpu->clock_hz *
           (bf16 ? of_a_cycle[i].bf16 : of_a_cycle[i].f32);
}

void roof_of(struct roof *r, const struct ddp_gpu_info *gpu, int count,
             enum ddp_dtype type, bool tf32)
{
    bool tensor_cores = type != DDP_F32 || tf32;
    const char *from = "its properties";

    r->flops = promised(gpu, tensor_cores) * FLOPS_REACHED;
    r->bytes = gpu->bytes_per_s * BYTES_REACHED;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(gpu->name, known[i].part)) {
            r->flops = tensor_cores ? known[i].flops : r->flops;
            r->bytes = known[i].bytes;
            from = "known by name";
            break;
        }
    if (type == DDP_F32 && tf32)
        r->flops /= 2;
    snprintf(r->base, sizeof(r->base),
             "%d x %.80s, %s: %.1f TFLOP/s, %.2f TB/s each", count, gpu->name,
             from, r->flops * 1e-12, r->bytes * 1e-12);
    r->flops *= count;
    r->bytes *= count;
}

/* ---- layers ------------------------------------------------------------- */

static double elements(struct ddp_shape s)
{
    return (double)s.h * s.w * s.c;
}

static void add_kernel(struct roof_time *t, const struct roof *r, double flops,
                       double bytes)
{
    double by_flops = flops / r->flops, by_bytes = bytes / r->bytes;

    t->flops += flops;
    t->bytes += bytes;
    t->seconds += by_flops > by_bytes ? by_flops : by_bytes;
}

void roof_add(struct roof_time *t, const struct roof *r,
              const struct ddp_layer_info *l)
{
    double x = elements(l->in) * t->element, y = elements(l->out) * t->element;
    double w = (double)l->params * t->element / t->sub_batch;

    if (l->flops > 0) { /* a convolution or dense layer */
        add_kernel(t, r, l->flops, x + y + w);
        add_kernel(t, r, l->flops, x + y + w);
        if (t->begun)
            add_kernel(t, r, l->flops, x + y + w);
        t->begun = true;
    } else if (!strcmp(l->kind, "batch_norm")) {
        add_kernel(t, r, 0, 2 * x);
        add_kernel(t, r, 0, 3 * x);
    } else if (!strcmp(l->kind, "max_pool") || !strcmp(l->kind, "mean_pool")) {
        add_kernel(t, r, 0, x + y);
        add_kernel(t, r, 0, x + y);
    }
    if (l->params)
        add_kernel(t, r, 0, 20 * (double)l->params / t->batch);
}
