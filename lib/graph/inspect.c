/* inspect.c - what is in a chain: layers, shapes, parameters, memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "graph/graph.h"

static bool count_layer(const ddp_value_t *v)
{
    return v->base == v &&
           (v->role == DDP__ACTIVATION || v->role == DDP__INPUT);
}

/* Bytes that a layer's forward keeps for backward. */
static size_t kept_bytes(const ddp_graph_t *g,
                         const struct ddp__span_of_layer *s)
{
    size_t sum = 0;

    for (int i = s->first_value; i < s->end_value; i++) {
        const ddp_value_t *v = g->value[i];

        if (count_layer(v) && v->per_sample && v->last_use >= g->forward_nodes)
            sum += ddp__value_size(g, v);
    }
    return sum;
}

/* Builds the graph of a training step for one sample, without running it:
 * its values have the shapes and lifetimes that are asked for. */
int ddp_chain_inspect(ddp_chain_t *c, struct ddp_shape in, enum ddp_dtype type,
                      int (*fn)(const struct ddp_layer_info *, void *arg),
                      void *arg)
{
    struct ddp__graph_spec spec = {.mode = DDP__TRAIN,
                                   .shape = in,
                                   .type = type,
                                   .dtype = type,
                                   .cap = 1,
                                   .loss = {.kind = DDP_CUSTOM_LOSS},
                                   .fill = ddp__graph_no_host};
    struct ddp__params *p = ddp__params_of(c);
    ddp_graph_t *g;
    int rc;

    if (!p)
        return ddp_errcode();
    if (type != DDP_F32 && type != DDP_BF16 && type != DDP_F16)
        return ddp__fail(
            DDP_EINVAL,
            "activations of type %d, expected DDP_F32, DDP_BF16 or DDP_F16",
            (int)type);
    if ((rc = ddp__graph_new(&g, c, p, &spec, true)) < 0)
        return rc;
    for (int i = 0; rc == 0 && i < g->spans; i++) {
        g->span[i].info.activation_size = kept_bytes(g, &g->span[i]);
        if (fn(&g->span[i].info, arg) != 0)
            rc = ddp__fail(DDP_ESTOPPED, "stopped by the caller");
    }
    ddp__graph_free(g);
    return rc;
}
