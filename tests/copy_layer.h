/* copy_layer.h - a layer of vectors that does nothing, and a hook in its
 * kernels SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef COPY_LAYER_H
#define COPY_LAYER_H

#include <string.h>

#include "ddp.h"
#include "ddp_layer.h"

/* Called before a kernel writes; < 0: the kernel fails. */
static int (*copy_hook)(bool backward);

static int copy_shape(const ddp_layer_t *l, struct ddp_shape x,
                      struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static int copy_values(const struct ddp_kernel_args *a, bool backward)
{
    int rc = copy_hook(backward);

    memcpy(a->buf[1].data, a->buf[0].data,
           (size_t)a->n * (size_t)a->buf[0].shape.c * sizeof(float));
    return rc;
}

static int copy_forward(const struct ddp_kernel_args *a)
{
    return copy_values(a, false);
}

static int copy_backward(const struct ddp_kernel_args *a)
{
    return copy_values(a, true);
}

static ddp_value_t *add_copy(ddp_graph_t *g, const struct ddp_kernel *k,
                             ddp_value_t *x)
{
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    return ddp_graph_call(g, k, NULL, 2, (ddp_value_t *[]){x, y},
                          (enum ddp_access[]){DDP_READ, DDP_WRITE}) < 0
               ? NULL
               : y;
}

static ddp_value_t *add_copy_forward(ddp_layer_t *l, ddp_graph_t *g,
                                     ddp_value_t *x)
{
    static const struct ddp_kernel k = {"copy", {copy_forward}};
    ddp_value_t *y = add_copy(g, &k, x);

    return y ? ddp_graph_record(
                   g, &(struct ddp_record){.layer = l, .x = x, .y = y})
             : NULL;
}

static ddp_value_t *add_copy_backward(ddp_layer_t *l, ddp_graph_t *g,
                                      const struct ddp_record *r,
                                      ddp_value_t *dy)
{
    static const struct ddp_kernel k = {"copy back", {copy_backward}};

    (void)l;
    (void)r;
    return add_copy(g, &k, dy);
}

static ddp_layer_t *copy_layer_new(void)
{
    static const struct ddp_layer_ops ops = {.kind = "copy",
                                             .shape = copy_shape,
                                             .forward = add_copy_forward,
                                             .backward = add_copy_backward};

    return ddp_layer_new(sizeof(ddp_layer_t), &ops);
}

#endif
