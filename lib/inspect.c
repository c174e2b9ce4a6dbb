/* inspect.c - what is in a chain: layers, shapes, parameters, memory */
#include "config.h"

#include <stdlib.h>

#include "inspect.h"

static size_t bytes_of(const ddp_graph_t *g, const ddp_value_t *v)
{
    size_t n = v->per_sample ? (size_t)g->spec.cap : 1;

    return n * (size_t)v->shape.h * (size_t)v->shape.w * (size_t)v->shape.c *
           ddp__dtype_size(v->type);
}

static bool counts(const ddp_value_t *v)
{
    return v->base == v &&
           (v->role == DDP__ACTIVATION || v->role == DDP__INPUT);
}

/* A value lives from the first node that writes it to its last use. */
size_t ddp__graph_peak(const ddp_graph_t *g)
{
    bool *alive = calloc((size_t)g->values + 1, sizeof(*alive));
    size_t now = 0, peak = 0;

    for (int i = 0; alive && i < g->nodes; i++) {
        const struct ddp__node *n = g->node[i];

        for (int b = 0; b < n->call.buffers; b++) {
            const ddp_value_t *v = n->buf[b]->base;

            if (counts(v) && !alive[v->id]) {
                alive[v->id] = true;
                now += bytes_of(g, v);
            }
        }
        if (now > peak)
            peak = now;
        for (int b = 0; b < n->call.buffers; b++) {
            const ddp_value_t *v = n->buf[b]->base;

            if (counts(v) && v->last_use == i && alive[v->id]) {
                alive[v->id] = false;
                now -= bytes_of(g, v);
            }
        }
    }
    free(alive);
    return peak;
}

static int no_host(const struct ddp__task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}

/* Bytes that a layer's forward leaves for backward. */
static size_t kept(const ddp_graph_t *g, const struct ddp__span_of_layer *s)
{
    size_t sum = 0;

    for (int i = s->first_value; i < s->end_value; i++) {
        const ddp_value_t *v = g->value[i];

        if (counts(v) && v->per_sample && v->last_use >= g->forward_nodes)
            sum += bytes_of(g, v);
    }
    return sum;
}

int ddp_chain_inspect(ddp_chain_t *c, struct ddp_shape in, enum ddp_dtype type,
                      int (*fn)(const struct ddp_layer_info *, void *arg),
                      void *arg)
{
    struct ddp__graph_spec spec = {.mode = DDP__TRAIN,
                                   .shape = in,
                                   .type = type,
                                   .dtype = type,
                                   .cap = 1,
                                   .loss = {.kind = DDP_OWN_LOSS},
                                   .fill = no_host};
    struct ddp__params *p = ddp__params_of(c);
    ddp_graph_t *g;
    int rc;

    if (!p)
        return DDP_EINVAL;
    if (type != DDP_F32 && type != DDP_BF16 && type != DDP_F16)
        return ddp__fail(DDP_EINVAL,
                         "activations are DDP_F32, DDP_BF16 or DDP_F16");
    if ((rc = ddp__graph_new(&g, c, p, &spec, true)) < 0)
        return rc;
    for (int i = 0; rc == 0 && i < g->spans; i++) {
        g->span[i].info.activation_size = kept(g, &g->span[i]);
        if (fn(&g->span[i].info, arg) != 0)
            rc = ddp__fail(DDP_ESTOPPED, "stopped by the caller");
    }
    ddp__graph_free(g);
    return rc;
}
