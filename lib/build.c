/* build.c - the whole graph of a chain: input, forward, loss, backward */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "graph.h"

static ddp_value_t *input_value(ddp_graph_t *g, struct ddp_shape shape,
                                enum ddp_dtype type, bool per_sample)
{
    return ddp__value_new(g, (struct ddp_value){.role = DDP__INPUT,
                                                .shape = shape,
                                                .type = type,
                                                .per_sample = per_sample});
}

/* ---- the whole ---------------------------------------------------------- */

/* Read the input; float input in the graph's own type is used as it is. */
static ddp_value_t *build_input(ddp_graph_t *g)
{
    const struct ddp__graph_spec *s = &g->spec;
    struct ddp__call c = {.op = s->type == DDP_U8 ? DDP__OP_INPUT_U8
                                                  : DDP__OP_INPUT_F32};
    ddp_value_t *y;

    if (s->type == s->dtype)
        return g->x;
    if (s->type == DDP_U8 && s->shape.c > 4 && g->rc == 0)
        g->rc = ddp__fail(DDP_ESHAPE,
                          "bytes come in up to 4 channels, not %d: "
                          "give floats",
                          s->shape.c);
    memcpy(c.input.mean, s->mean, sizeof(c.input.mean));
    memcpy(c.input.std, s->std, sizeof(c.input.std));
    y = ddp__value_like(g, s->shape);
    ddp__emit(g, &c, 2, (ddp_value_t *[]){g->x, y},
              (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return y;
}

/* Values that the fill function writes, and its node. */
static void build_fill(ddp_graph_t *g)
{
    const struct ddp__graph_spec *s = &g->spec;
    struct ddp__call c = {.op = DDP__OP_HOST, .host = {s->fill, s->arg}};
    bool loss = s->mode == DDP__TRAIN || s->mode == DDP__EVAL;
    int len = s->target_len ? s->target_len : 1;

    g->x = input_value(g, s->shape, s->type, true);
    g->ids = input_value(g, (struct ddp_shape){1, 1, 1}, DDP_I64, true);
    if (loss) {
        g->target = input_value(g, (struct ddp_shape){1, 1, len},
                                s->classes ? DDP_I32 : DDP_F32, true);
        g->weight = input_value(g, (struct ddp_shape){1, 1, s->cap + 1},
                                DDP_F32, false);
    }
    ddp__emit(g, &c, loss ? 4 : 2,
              (ddp_value_t *[]){g->x, g->ids, g->target, g->weight},
              (enum ddp_access[]){DDP_WRITE, DDP_WRITE, DDP_WRITE, DDP_WRITE});
}

static int check_output(ddp_graph_t *g)
{
    const struct ddp__graph_spec *s = &g->spec;
    struct ddp_shape y = g->y->shape;

    if (s->classes && (y.h != 1 || y.w != 1 || y.c != s->classes))
        return ddp__fail(DDP_ESHAPE,
                         "the chain gives (%d, %d, %d) for %d classes, wants "
                         "(1, 1, %d)",
                         y.h, y.w, y.c, s->classes, s->classes);
    if (!s->classes && s->loss.kind == DDP_LOGIT_CROSS_ENTROPY)
        return ddp__fail(DDP_EINVAL, "cross entropy needs classes; this data "
                                     "set has targets");
    if (!s->classes && s->loss.kind == DDP_MSE &&
        y.h * y.w * y.c != s->target_len)
        return ddp__fail(DDP_ESHAPE, "the chain gives %d values, targets %d",
                         y.h * y.w * y.c, s->target_len);
    if (s->classes && s->loss.kind == DDP_MSE)
        return ddp__fail(DDP_EINVAL, "MSE needs targets; this data set has "
                                     "classes");
    return 0;
}

/* Loss of the logits; returns its gradient in training. */
static ddp_value_t *build_loss(ddp_graph_t *g)
{
    struct ddp__call c = {.op = DDP__OP_LOSS, .loss = g->spec.loss};
    bool train = g->spec.mode == DDP__TRAIN;
    struct ddp_shape flat;
    ddp_value_t *y, *dx = NULL;

    if (g->rc < 0 || (g->rc = check_output(g)) < 0)
        return NULL;
    flat =
        (struct ddp_shape){1, 1, g->y->shape.h * g->y->shape.w * g->y->shape.c};
    y = ddp__value_alias(g, g->y, flat);
    g->totals =
        ddp__value_new(g, (struct ddp_value){.role = DDP__TOTALS,
                                             .shape = {1, 1, DDP__STATS},
                                             .type = DDP_F64});
    if (train)
        dx = ddp__value_like(g, flat);
    ddp__emit(g, &c, train ? 5 : 4,
              (ddp_value_t *[]){y, g->target, g->weight, g->totals, dx},
              (enum ddp_access[]){DDP_READ, DDP_READ, DDP_READ, DDP_WRITE,
                                  DDP_WRITE});
    return train ? ddp__value_alias(g, dx, g->y->shape) : NULL;
}

static void build_output(ddp_graph_t *g, ddp_value_t *v,
                         int (*fn)(const struct ddp__task *t, void *arg))
{
    struct ddp__call c = {.op = DDP__OP_HOST, .host = {fn, g->spec.arg}};

    if (v && fn)
        ddp__emit(g, &c, 1, (ddp_value_t *[]){v},
                  (enum ddp_access[]){DDP_READ});
}

/* The gradient that backward starts from. */
static ddp_value_t *build_seed(ddp_graph_t *g)
{
    struct ddp__call c = {.op = DDP__OP_HOST,
                          .host = {g->spec.fill_dy, g->spec.arg}};

    if (g->rc < 0)
        return NULL;
    switch (g->spec.mode) {
    case DDP__TRAIN:
    case DDP__EVAL:
        return build_loss(g);
    case DDP__PULL:
        build_output(g, g->y, g->spec.output);
        g->forward_nodes = g->nodes;
        g->dy = input_value(g, g->y->shape, g->spec.dtype, true);
        ddp__emit(g, &c, 1, (ddp_value_t *[]){g->dy},
                  (enum ddp_access[]){DDP_WRITE});
        return g->dy;
    default:
        build_output(g, g->y, g->spec.output);
        g->forward_nodes = g->nodes;
        return NULL;
    }
}

static int build(ddp_graph_t *g, ddp_chain_t *chain)
{
    ddp_value_t *x, *dy;

    build_fill(g);
    if (!(x = build_input(g)))
        return g->rc;
    x->wants = g->spec.input_gradient;
    g->y = ddp__layer_forward(chain, g, x);
    g->forward_nodes = g->nodes;
    if ((dy = build_seed(g))) {
        g->dx = ddp__backward_range(g, 0, g->records, dy);
        if (g->spec.input_gradient)
            build_output(g, g->dx, g->spec.output_dx);
    }
    return g->rc;
}

int ddp__graph_new(ddp_graph_t **out, ddp_chain_t *chain,
                   struct ddp__params *params,
                   const struct ddp__graph_spec *spec, bool inspect)
{
    ddp_graph_t *g = calloc(1, sizeof(*g));
    int rc;

    if (!g)
        return ddp__fail(DDP_ENOMEM, "no memory for a graph");
    g->spec = *spec;
    g->params = params;
    g->inspect = inspect;
    if ((rc = build(g, chain)) < 0) {
        ddp__graph_free(g);
        return rc;
    }
    *out = g;
    return 0;
}

void ddp__graph_free(ddp_graph_t *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->nodes; i++) {
        ddp__call_release(&g->node[i]->call);
        free(g->node[i]);
    }
    for (int i = 0; i < g->values; i++)
        free(g->value[i]);
    free(g->node);
    free(g->value);
    free(g->record);
    free(g->span);
    free(g);
}
