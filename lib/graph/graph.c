/* graph.c - the whole graph of a chain: input, forward, loss, backward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/defer.h"
#include "graph/fold.h"
#include "graph/graph.h"
#include "graph/pad.h"
#include "graph/pass.h"
#include "graph/teach.h"
#include "runtime/devices.h"

bool ddp__graph_trains(const ddp_graph_t *g, const ddp_layer_t *l)
{
    int b = l->param_block;

    return b >= 0 && !(g->spec.frozen && g->spec.frozen[b]);
}

static ddp_value_t *input_value(ddp_graph_t *g, struct ddp_shape shape,
                                enum ddp_dtype type, bool per_sample)
{
    return ddp__value_new(g, (struct ddp_value){.role = DDP__INPUT,
                                                .shape = shape,
                                                .type = type,
                                                .per_sample = per_sample});
}

/* ---- stages ------------------------------------------------------------- */

int ddp__graph_stage_end(const ddp_graph_t *g, int k)
{
    return g->sum[k]->first_use + 1;
}

bool ddp__graph_ends_stage(const ddp_graph_t *g, int i)
{
    for (int k = 0; k < g->sums; k++)
        if (ddp__graph_stage_end(g, k) == i + 1)
            return true;
    return false;
}

/* ---- the whole ---------------------------------------------------------- */

/* Read the input; a float input in the graph's type is used directly. */
static ddp_value_t *build_input(ddp_graph_t *g, bool flip)
{
    const struct ddp__graph_spec *s = &g->spec;
    struct ddp__call c = {.op = s->type == DDP_U8 ? DDP__OP_INPUT_U8
                                                  : DDP__OP_INPUT_F32};
    ddp_value_t *y;

    if (s->type == s->dtype && !flip)
        return g->x;
    if (s->type == DDP_U8 && s->shape.c > 4 && g->rc == 0)
        g->rc = ddp__fail(DDP_ESHAPE,
                          "u8 input has %d channels, expected at most 4; "
                          "use f32",
                          s->shape.c);
    memcpy(c.input.mean, s->mean, sizeof(c.input.mean));
    memcpy(c.input.std, s->std, sizeof(c.input.std));
    c.input.flip = flip;
    y = ddp__value_like(g, s->shape);
    ddp__emit(g, &c,
              DDP__VALUES([DDP__INPUT_U8_X] = g->x, [DDP__INPUT_U8_Y] = y));
    return y;
}

/* Values that the fill function writes, and its node. */
static void build_fill(ddp_graph_t *g)
{
    const struct ddp__graph_spec *s = &g->spec;
    struct ddp__call c = {.op = DDP__OP_HOST,
                          .host = {DDP__HOST_FILL, s->fill, s->arg}};
    bool loss = s->mode == DDP__TRAIN || s->mode == DDP__EVAL;
    bool label = s->classes && !s->shares;
    int len = s->shares ? s->classes : s->target_len ? s->target_len : 1;
    int outputs = s->classes ? s->classes : s->target_len;
    int positives = s->loss.positives ? outputs : 0;

    g->x = input_value(g, s->shape, s->type, true);
    g->ids = input_value(g, (struct ddp_shape){1, 1, 1}, DDP_I64, true);
    if (loss) {
        g->target = input_value(g, (struct ddp_shape){1, 1, len},
                                label ? DDP_I32 : DDP_F32, true);
        g->weight =
            input_value(g, (struct ddp_shape){1, 1, s->cap + 1 + positives},
                        DDP_F32, false);
    }
    ddp__emit(g, &c,
              DDP__VALUES([DDP__FILL_X] = g->x, [DDP__FILL_IDS] = g->ids,
                          [DDP__FILL_TARGET] = g->target,
                          [DDP__FILL_WEIGHT] = g->weight));
}

/* (a + b) / 2: concatenate, then pool. */
static ddp_value_t *build_mean(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b)
{
    struct ddp__call put = {.op = DDP__OP_CONCAT};
    struct ddp__call pool = {.op = DDP__OP_MEAN_POOL_FWD,
                             .pool = {.kh = 2, .kw = 1, .sh = 2, .sw = 1}};
    ddp_value_t *both, *y;
    int len;

    if (g->rc < 0)
        return NULL;
    len = a->shape.h * a->shape.w * a->shape.c;
    both = ddp__value_like(g, (struct ddp_shape){1, 1, 2 * len});
    a = ddp__value_alias(g, a, (struct ddp_shape){1, 1, len});
    b = ddp__value_alias(g, b, (struct ddp_shape){1, 1, len});
    ddp__emit(g, &put,
              DDP__VALUES([DDP__CONCAT_X] = a, [DDP__CONCAT_Y] = both));
    put.at = len;
    ddp__emit(g, &put,
              DDP__VALUES([DDP__CONCAT_X] = b, [DDP__CONCAT_Y] = both));
    both = ddp__value_alias(g, both, (struct ddp_shape){2, 1, len});
    y = ddp__value_like(g, (struct ddp_shape){1, 1, len});
    ddp__emit(
        g, &pool,
        DDP__VALUES([DDP__MEAN_POOL_FWD_X] = both, [DDP__MEAN_POOL_FWD_Y] = y));
    return y;
}

/* Run the chain on the input, and with flip also on its mirror image. */
static int build_forward(ddp_graph_t *g, ddp_chain_t *chain)
{
    ddp_value_t *x = build_input(g, false);

    if (!x)
        return g->rc;
    if (ddp__graph_teacher(g, x) < 0)
        return g->rc;
    x->needs_gradient = g->spec.input_gradient;
    g->y = ddp__layer_forward(chain, g, x);
    if (g->spec.flip && g->y) {
        struct ddp_shape shape = g->y->shape;

        x = build_input(g, true);
        g->y = build_mean(g, g->y, ddp__layer_forward(chain, g, x));
        g->y = ddp__value_alias(g, g->y, shape);
    }
    g->forward_nodes = g->nodes;
    return g->rc;
}

/* The chain, the data set and the loss must agree on what an output is;
 * which of them to change depends on the combination, so each has its
 * message. */
static int check_output(const ddp_graph_t *g, struct ddp_shape y,
                        const char *who)
{
    const struct ddp__graph_spec *s = &g->spec;
    const struct ddp__loss_info *loss = ddp__loss_info(s->loss.kind);

    if (s->classes && (y.h != 1 || y.w != 1 || y.c != s->classes))
        return ddp__fail(DDP_ESHAPE,
                         "%s gives (%d, %d, %d) for %d classes, expected "
                         "(1, 1, %d)",
                         who, y.h, y.w, y.c, s->classes, s->classes);
    if (!s->classes && loss->target != DDP__TARGET_ANY &&
        y.h * y.w * y.c != s->target_len)
        return ddp__fail(DDP_ESHAPE,
                         "%s gives %d values, expected %d as in a target", who,
                         y.h * y.w * y.c, s->target_len);
    if (s->classes && loss->target == DDP__TARGET_VALUES)
        return ddp__fail(DDP_EINVAL,
                         "the loss %s needs values as targets, but this data "
                         "set has classes: choose another loss",
                         loss->name);
    if (s->classes && s->target_len && s->loss.kind == DDP_LOGIT_CROSS_ENTROPY)
        return ddp__fail(DDP_EINVAL,
                         "samples have several classes: choose a loss that "
                         "takes each for itself, such as "
                         "DDP_BINARY_CROSS_ENTROPY");
    if (s->target_len == 1 && s->loss.kind == DDP_LOGIT_CROSS_ENTROPY)
        return ddp__fail(DDP_EINVAL,
                         "the cross entropy of one class is always 0, "
                         "and targets are one value: choose another loss, such "
                         "as DDP_MSE");
    return 0;
}

/* The loss of the chain is first and initialises the sums; auxiliary losses
 * add to them, in the order of the backward pass. */
ddp_value_t *ddp__graph_loss(ddp_graph_t *g, ddp_value_t *y, float aux)
{
    struct ddp__call c = {.op = DDP__OP_LOSS, .loss = g->spec.loss};
    bool train = g->spec.mode == DDP__TRAIN;
    bool scaled = train && g->spec.dtype == DDP_F16;
    struct ddp_shape shape = ddp_value_shape(y);
    struct ddp_shape flat = {1, 1, shape.h * shape.w * shape.c};
    ddp_value_t *dx = NULL, *scale = NULL;

    if (g->rc < 0 ||
        (g->rc = check_output(
             g, shape, aux > 0 ? "an auxiliary branch" : "the chain")) < 0)
        return NULL;
    c.loss.aux = aux;
    if (!g->stats)
        g->stats =
            ddp__value_new(g, (struct ddp_value){.role = DDP__LANE_STATS,
                                                 .shape = {1, 1, DDP__STATS},
                                                 .type = DDP_F64});
    if (train)
        dx = ddp__value_like(g, flat);
    if (scaled)
        scale =
            ddp__value_new(g, (struct ddp_value){.role = DDP__SCALE,
                                                 .shape = {1, 1, 1},
                                                 .type = DDP_F64,
                                                 .offset = DDP__SCALER_SCALE *
                                                           sizeof(double)});
    y = ddp__value_alias(g, y, flat);
    ddp__emit(g, &c,
              DDP__VALUES([DDP__LOSS_X] = y, [DDP__LOSS_TARGET] = g->target,
                          [DDP__LOSS_WEIGHT] = g->weight,
                          [DDP__LOSS_STATS] = g->stats, [DDP__LOSS_DX] = dx,
                          [DDP__LOSS_SCALE] = scale));
    if (g->taught && !(aux > 0))
        ddp__graph_teach(g, y, dx, scale);
    return train ? ddp__value_alias(g, dx, shape) : NULL;
}

static void build_output(ddp_graph_t *g, ddp_value_t *v,
                         int (*fn)(const struct ddp__task *t, void *arg))
{
    struct ddp__call c = {.op = DDP__OP_HOST,
                          .host = {DDP__HOST_OUTPUT, fn, g->spec.arg}};

    if (v && fn)
        ddp__emit(g, &c, DDP__VALUES([DDP__OUTPUT_Y] = v));
}

/* Pass the chain's prediction for each sample to the host, with its class and
 * number.  The end of a step waits for the stats; this call does not change
 * them. */
static void build_answers(ddp_graph_t *g)
{
    struct ddp__call c = {
        .op = DDP__OP_HOST,
        .host = {DDP__HOST_OUTPUT, g->spec.output, g->spec.arg}};

    if (g->spec.output)
        ddp__emit(
            g, &c,
            DDP__VALUES(
                [DDP__OUTPUT_Y] = g->y, [DDP__OUTPUT_TARGET] = g->target,
                [DDP__OUTPUT_IDS] = g->ids, [DDP__OUTPUT_STATS] = g->stats));
}

/* The gradient that backward starts from. */
static ddp_value_t *build_seed(ddp_graph_t *g)
{
    struct ddp__call c = {
        .op = DDP__OP_HOST,
        .host = {DDP__HOST_SEED, g->spec.fill_dy, g->spec.arg}};

    if (g->rc < 0)
        return NULL;
    switch (g->spec.mode) {
    case DDP__TRAIN:
        return ddp__graph_loss(g, g->y, 0);
    case DDP__EVAL:
        ddp__graph_loss(g, g->y, 0);
        build_answers(g);
        return NULL;
    case DDP__PULL:
        build_output(g, g->y, g->spec.output);
        g->forward_nodes = g->nodes;
        g->phase = DDP__BACKWARD_X;
        g->dy = input_value(g, g->y->shape, g->spec.dtype, true);
        ddp__emit(g, &c, DDP__VALUES([DDP__SEED_DY] = g->dy));
        return g->dy;
    default:
        build_output(g, g->y, g->spec.output);
        g->forward_nodes = g->nodes;
        return NULL;
    }
}

static int build_graph(ddp_graph_t *g, ddp_chain_t *chain)
{
    ddp_value_t *dy;

    build_fill(g);
    if (build_forward(g, chain) < 0)
        return g->rc;
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
        return ddp__fail(DDP_ENOMEM, "out of memory for a graph");
    g->spec = *spec;
    g->params = params;
    g->inspect = inspect;
    if ((rc = build_graph(g, chain)) == 0) {
        ddp__graph_pad(g);
        ddp__graph_fold(g);
        ddp__graph_defer(g);
        for (int i = 0; i < g->nodes; i++)
            g->node[i]->call.split = g->spec.split;
        rc = ddp__graph_segment(g);
    }
    if (rc < 0) {
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
    free(g->segment);
    free(g->arena);
    free(g->sum);
    free(g->span);
    free(g);
}

int ddp__graph_no_host(const struct ddp__task *t, void *arg)
{
    (void)t;
    (void)arg;
    return 0;
}
