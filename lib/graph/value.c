/* value.c - the values of a graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <limits.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/value.h"

/* Elements of one sample are counted in an int. */
static int check_size(const struct ddp_value *v)
{
    double len = (double)v->shape.h * v->shape.w * v->shape.c;

    if (v->shape.h > 0 && v->shape.w > 0 && v->shape.c > 0 && len <= INT_MAX)
        return 0;
    return ddp__fail(DDP_ESHAPE, "(%d, %d, %d) is not a valid tensor size",
                     v->shape.h, v->shape.w, v->shape.c);
}

ddp_value_t *ddp__value_new(ddp_graph_t *g, struct ddp_value v)
{
    ddp_value_t *p;

    if (g->rc < 0 || (g->rc = check_size(&v)) < 0 ||
        (g->rc = ddp__array_grow((void **)&g->value, g->values,
                                 sizeof(*g->value))) < 0)
        return NULL;
    if (!(p = malloc(sizeof(*p)))) {
        g->rc = ddp__fail(DDP_ENOMEM, "out of memory for a graph");
        return NULL;
    }
    *p = v;
    p->id = g->values;
    p->first_use = p->last_use = p->segment = -1;
    if (!p->base)
        p->base = p;
    g->value[g->values++] = p;
    return p;
}

ddp_value_t *ddp_graph_value(ddp_graph_t *g, struct ddp_shape shape,
                             enum ddp_dtype type)
{
    return ddp__value_new(g, (struct ddp_value){.role = DDP__ACTIVATION,
                                                .shape = shape,
                                                .type = type,
                                                .per_sample = true});
}

ddp_value_t *ddp__value_like(ddp_graph_t *g, struct ddp_shape shape)
{
    return ddp_graph_value(g, shape, g->spec.dtype);
}

ddp_value_t *ddp__value_vector(ddp_graph_t *g, int len, enum ddp_dtype type)
{
    return ddp__value_new(g, (struct ddp_value){.role = DDP__ACTIVATION,
                                                .shape = {1, 1, len},
                                                .type = type});
}

ddp_value_t *ddp__value_alias(ddp_graph_t *g, ddp_value_t *v,
                              struct ddp_shape shape)
{
    if (!v)
        return NULL;
    return ddp__value_new(
        g, (struct ddp_value){.role = v->role,
                              .shape = shape,
                              .type = v->type,
                              .per_sample = v->per_sample,
                              .needs_gradient = v->needs_gradient,
                              .base = v->base});
}

static ddp_value_t *block_value(ddp_graph_t *g, ddp_layer_t *l,
                                enum ddp__role role)
{
    const struct ddp__param_block *b;

    if (g->rc < 0)
        return NULL;
    if (l->param_block < 0) {
        g->rc = ddp__fail(DDP_EINVAL, "%s: has no parameters", l->ops->kind);
        return NULL;
    }
    b = &g->params->block[l->param_block];
    return ddp__value_new(g, (struct ddp_value){.role = role,
                                                .shape = {1, 1, (int)b->len},
                                                .type = DDP_F32,
                                                .bucket = b->bucket,
                                                .offset = b->offset * 4});
}

ddp_value_t *ddp_graph_param(ddp_graph_t *g, ddp_layer_t *l)
{
    return block_value(g, l, g->teaching ? DDP__TEACHER : DDP__PARAM);
}

ddp_value_t *ddp_graph_param_gradient(ddp_graph_t *g, ddp_layer_t *l)
{
    return block_value(g, l, DDP__GRAD);
}

static ddp_value_t *sum_value(ddp_graph_t *g, int len, enum ddp__role role)
{
    return ddp__value_new(g, (struct ddp_value){.role = role,
                                                .shape = {1, 1, len},
                                                .type = DDP_F64,
                                                .bucket = g->sums});
}

struct ddp__sums ddp__value_sums(ddp_graph_t *g, int len)
{
    struct ddp__sums s = {.lane = sum_value(g, len, DDP__LANE_SUM)};

    s.step = sum_value(g, len, DDP__STEP_SUM);
    if (g->rc == 0 && (g->rc = ddp__array_grow((void **)&g->sum, g->sums,
                                               sizeof(*g->sum))) == 0)
        g->sum[g->sums++] = s.lane;
    return s;
}

struct ddp_shape ddp_value_shape(const ddp_value_t *v)
{
    return v ? v->shape : (struct ddp_shape){0, 0, 0};
}

enum ddp_dtype ddp_value_type(const ddp_value_t *v)
{
    return v ? v->type : DDP_F32;
}

bool ddp_value_needs_gradient(const ddp_value_t *v)
{
    return v && v->needs_gradient;
}

bool ddp_graph_training(const ddp_graph_t *g)
{
    return g->spec.mode == DDP__TRAIN || g->spec.mode == DDP__PULL;
}
