/* watch_layer.h - a layer that counts its graphs, waits, and may fail
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WATCH_LAYER_H
#define WATCH_LAYER_H

#include <stdatomic.h>
#include <string.h>

#include "ddp_layer.h"
#include "tap.h"

struct watch {
    ddp_layer_t layer; /* first */
    int graphs;        /* that it has been put into */
    atomic_bool hold;  /* its kernel waits */
};

static inline int watch_shape(const ddp_layer_t *l, struct ddp_shape x,
                              struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

/* y = x, unless that begins with a negative number. */
static inline int watch_run(const struct ddp_kernel_args *a)
{
    const struct watch *l = a->arg;
    const float *x = a->buf[0].data;

    while (atomic_load(&l->hold))
        ;
    memcpy(a->buf[1].data, x, (size_t)a->n * sizeof(*x));
    return *x < 0;
}

static const struct ddp_kernel watch_kernel = {.name = "copy",
                                               .on = {[DDP_CPU] = watch_run}};

static inline ddp_value_t *watch_forward(ddp_layer_t *l, ddp_graph_t *g,
                                         ddp_value_t *x)
{
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    ((struct watch *)l)->graphs++;
    ddp_graph_call(g, &watch_kernel, l, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

static inline ddp_value_t *watch_backward(ddp_layer_t *l, ddp_graph_t *g,
                                          const struct ddp_record *r,
                                          ddp_value_t *dy)
{
    ddp_value_t *dx = ddp_graph_value(g, ddp_value_shape(dy), DDP_F32);

    (void)r;
    ddp_graph_call(g, &watch_kernel, l, 2, (ddp_value_t *[]){dy, dx},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return dx;
}

static const struct ddp_layer_ops watch_ops = {.kind = "watch",
                                               .shape = watch_shape,
                                               .forward = watch_forward,
                                               .backward = watch_backward};

static const struct ddp_shape one = {1, 1, 1};

static inline ddp_chain_t *watched(struct watch **w)
{
    ddp_chain_t *c;

    *w = (struct watch *)ddp_layer_new(sizeof(**w), &watch_ops);
    if (!*w || !(c = ddp_chain_new(&(*w)->layer, DDP_END)))
        bail_out("%s", ddp_errmsg());
    return c;
}

#endif
