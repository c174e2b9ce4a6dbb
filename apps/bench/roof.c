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

void roof_of(struct roof *r, const struct ddp_gpu_info *gpu, int count,
             enum ddp_dtype type)
{
    struct ddp_device_speed s;
    int by_name = ddp_gpu_speed(gpu, type, &s);

    r->flops = s.flops;
    r->bytes = s.bytes_per_s;
    snprintf(r->base, sizeof(r->base),
             "%d x %.80s, %s: %.1f TFLOP/s, %.2f TB/s each", count, gpu->name,
             by_name ? "known by name" : "its properties", r->flops * 1e-12,
             r->bytes * 1e-12);
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
