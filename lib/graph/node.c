/* node.c - building the list of operations of a chain */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"

/* ---- values ------------------------------------------------------------- */

/* Room for one more in an array that doubles. */
static int grow(void **array, int n, size_t size)
{
    void *p;

    if (n & (n - 1))
        return 0; /* between powers of two there is room */
    if (!(p = realloc(*array, (size_t)(n ? 2 * n : 1) * size)))
        return ddp__fail(DDP_ENOMEM, "no memory for a graph");
    *array = p;
    return 0;
}

/* Elements of one sample are counted in an int. */
static int check_size(const struct ddp_value *v)
{
    double len = (double)v->shape.h * v->shape.w * v->shape.c;

    if (v->shape.h > 0 && v->shape.w > 0 && v->shape.c > 0 && len <= INT_MAX)
        return 0;
    return ddp__fail(DDP_ESHAPE, "(%d, %d, %d) is no size of a tensor",
                     v->shape.h, v->shape.w, v->shape.c);
}

ddp_value_t *ddp__value_new(ddp_graph_t *g, struct ddp_value v)
{
    ddp_value_t *p;

    if (g->rc < 0 || (g->rc = check_size(&v)) < 0 ||
        (g->rc = grow((void **)&g->value, g->values, sizeof(*g->value))) < 0)
        return NULL;
    if (!(p = malloc(sizeof(*p)))) {
        g->rc = ddp__fail(DDP_ENOMEM, "no memory for a graph");
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
    return ddp__value_new(g, (struct ddp_value){.role = v->role,
                                                .shape = shape,
                                                .type = v->type,
                                                .per_sample = v->per_sample,
                                                .wants = v->wants,
                                                .base = v->base});
}

static ddp_value_t *block_value(ddp_graph_t *g, ddp_layer_t *l,
                                enum ddp__role role)
{
    const struct ddp__block *b;

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
    return block_value(g, l, DDP__PARAM);
}

ddp_value_t *ddp_graph_param_gradient(ddp_graph_t *g, ddp_layer_t *l)
{
    return block_value(g, l, DDP__GRAD);
}

struct ddp_shape ddp_value_shape(const ddp_value_t *v)
{
    return v ? v->shape : (struct ddp_shape){0, 0, 0};
}

enum ddp_dtype ddp_value_type(const ddp_value_t *v)
{
    return v ? v->type : DDP_F32;
}

bool ddp_value_wants_gradient(const ddp_value_t *v)
{
    return v && v->wants;
}

bool ddp_graph_training(const ddp_graph_t *g)
{
    return g->spec.mode == DDP__TRAIN || g->spec.mode == DDP__PULL;
}

/* ---- calls -------------------------------------------------------------- */

/* A node without buffers, or NULL: after a failure too. */
static struct ddp__node *node_new(ddp_graph_t *g, const struct ddp__call *c)
{
    struct ddp__node *n;

    if (g->rc < 0 ||
        (g->rc = grow((void **)&g->node, g->nodes, sizeof(*g->node))) < 0)
        return NULL;
    if (!(n = calloc(1, sizeof(*n)))) {
        g->rc = ddp__fail(DDP_ENOMEM, "no memory for a graph");
        return NULL;
    }
    n->call = *c;
    n->call.cap = g->spec.cap;
    n->call.buffers = 0;
    n->phase = g->phase;
    g->node[g->nodes++] = n;
    return n;
}

/* Buffer i of the last node. */
static void set_buffer(ddp_graph_t *g, struct ddp__node *n, int i,
                       ddp_value_t *v, enum ddp_access access)
{
    n->buf[i] = v;
    n->access[i] = access;
    n->call.buf[i] =
        (struct ddp__view){v->type, v->per_sample, v->shape, v->offset};
    n->call.buffers = i + 1;
    if (v->base->first_use < 0)
        v->base->first_use = g->nodes - 1;
    v->base->last_use = g->nodes - 1;
}

static bool complete(ddp_graph_t *g, const struct ddp__signature *s,
                     ddp_value_t *const value[])
{
    for (int i = 0; g->rc == 0 && i < s->operands; i++)
        if (!value[i] && !(s->operand[i].use & DDP__OPTIONAL))
            g->rc = ddp__fail(DDP_EINVAL, "%s: operand %s of %s is missing",
                              g->path, s->operand[i].name, s->name);
    return g->rc == 0;
}

void ddp__emit(ddp_graph_t *g, const struct ddp__call *c,
               ddp_value_t *const value[DDP_MAX_BUFFERS])
{
    const struct ddp__signature *s = &ddp__signature[c->op];
    struct ddp__node *n;

    if (!complete(g, s, value) || !(n = node_new(g, c)))
        return;
    for (int i = 0; i < s->operands; i++)
        if (value[i])
            set_buffer(g, n, i, value[i],
                       ddp__op_access(c->op, i, value[i]->base->first_use < 0));
}

void ddp__emit_any(ddp_graph_t *g, const struct ddp__call *c, int buffers,
                   ddp_value_t *const buf[], const enum ddp_access access[])
{
    struct ddp__node *n;

    for (int i = 0; g->rc == 0 && i < buffers; i++)
        if (!buf[i])
            g->rc = ddp__fail(DDP_EINVAL, "%s: a value of a call is missing",
                              g->path);
    if (!(n = node_new(g, c)))
        return;
    for (int i = 0; i < buffers; i++)
        set_buffer(g, n, i, buf[i], access[i]);
}

int ddp_graph_call(ddp_graph_t *g, const struct ddp_kernel *k, const void *arg,
                   int buffers, ddp_value_t *const buf[],
                   const enum ddp_access access[])
{
    struct ddp__call c = {.op = DDP__OP_USER, .user = {k, arg}};

    if (g->rc == 0 && (!k || !k->cpu))
        g->rc = ddp__fail(DDP_EINVAL, "%s: a kernel needs a function for CPUs",
                          g->path);
    if (g->rc == 0 && (buffers < 1 || buffers > DDP_MAX_BUFFERS))
        g->rc = ddp__fail(DDP_EINVAL, "%s: %d buffers, wants 1 to %d", g->path,
                          buffers, DDP_MAX_BUFFERS);
    if (g->rc == 0)
        ddp__emit_any(g, &c, buffers, buf, access);
    return g->rc;
}

ddp_value_t *ddp__value_add(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            enum ddp_act act)
{
    ddp_value_t *y;

    if (!a || !b)
        return NULL;
    y = ddp__value_like(g, a->shape);
    ddp__emit(
        g, &(struct ddp__call){.op = DDP__OP_ADD, .act = act},
        DDP__VALUES([DDP__ADD_A] = a, [DDP__ADD_B] = b, [DDP__ADD_Y] = y));
    return y;
}

ddp_value_t *ddp__value_sum(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            const ddp_value_t *keep)
{
    if (!a || !b)
        return a ? a : b;
    if (a->base == keep->base) {
        ddp_value_t *swap = a;

        a = b;
        b = swap;
    }
    if (a->base == keep->base || a->base == b->base)
        return ddp__value_add(g, a, b, DDP_IDENTITY);
    ddp__emit(g, &(struct ddp__call){.op = DDP__OP_ACC},
              DDP__VALUES([DDP__ACC_DST] = a, [DDP__ACC_SRC] = b));
    return a;
}

ddp_value_t *ddp__act_backward(ddp_graph_t *g, enum ddp_act act, ddp_value_t *s,
                               ddp_value_t *dy)
{
    ddp_value_t *dx;

    if (act == DDP_IDENTITY || g->rc < 0)
        return dy;
    dx = ddp__value_like(g, dy->shape);
    ddp__emit(g, &(struct ddp__call){.op = DDP__OP_ACT_BWD, .act = act},
              DDP__VALUES([DDP__ACT_BWD_SLOPE] = s, [DDP__ACT_BWD_DY] = dy,
                          [DDP__ACT_BWD_DX] = dx));
    return dx;
}

ddp_value_t *ddp__weighted_backward(ddp_graph_t *g, const struct ddp_record *r,
                                    ddp_value_t *dy, struct ddp__call call,
                                    enum ddp__op bwd_w, enum ddp__op bwd_x)
{
    ddp_value_t *dw = ddp_graph_param_gradient(g, r->layer), *w, *dx;

    dy = ddp__act_backward(g, r->act, r->y, dy);
    call.op = bwd_w;
    g->phase = DDP__BACKWARD_W;
    ddp__emit(g, &call,
              DDP__VALUES([DDP__CONV_BWD_W_X] = r->x, [DDP__CONV_BWD_W_DY] = dy,
                          [DDP__CONV_BWD_W_G] = dw));
    g->phase = DDP__BACKWARD_X;
    if (!r->x->wants)
        return NULL;
    w = ddp_graph_param(g, r->layer);
    dx = ddp__value_like(g, r->x->shape);
    call.op = bwd_x;
    ddp__emit(g, &call,
              DDP__VALUES([DDP__CONV_BWD_X_DY] = dy, [DDP__CONV_BWD_X_W] = w,
                          [DDP__CONV_BWD_X_DX] = dx));
    return dx;
}

enum ddp_act ddp__take_act(ddp_graph_t *g)
{
    enum ddp_act a = g->fuse_act;

    g->fuse_act = DDP_IDENTITY;
    return a;
}

ddp_value_t *ddp__take_residual(ddp_graph_t *g)
{
    ddp_value_t *r = g->fuse_residual;

    g->fuse_residual = NULL;
    return r;
}

/* ---- records ------------------------------------------------------------ */

/* Whether a gradient of r->y is of use: to x, to the layer's parameters, or to
 * something inside the layer. */
static bool wants(const ddp_graph_t *g, const struct ddp_record *r)
{
    bool any = r->x->wants || r->y->wants || r->layer->param_block >= 0 ||
               (r->residual && r->residual->wants);

    for (int i = r->begin; r->layer->children && i < g->records; i++)
        any = any || g->record[i].y->wants;
    return any;
}

ddp_value_t *ddp_graph_record(ddp_graph_t *g, const struct ddp_record *r)
{
    if (g->rc < 0 || !r->y)
        return NULL;
    if ((g->rc = grow((void **)&g->record, g->records, sizeof(*g->record))) < 0)
        return NULL;
    r->y->wants = ddp_graph_training(g) && wants(g, r);
    g->record[g->records] = *r;
    g->record[g->records].end = g->records;
    if (r->layer->children == 0)
        g->record[g->records].begin = g->records;
    g->records++;
    return r->y;
}

ddp_value_t *ddp__backward_range(ddp_graph_t *g, int begin, int end,
                                 ddp_value_t *dy)
{
    while (end > begin && dy && g->rc == 0) {
        const struct ddp_record r = g->record[end - 1];

        g->phase = DDP__BACKWARD_X;
        dy = r.layer->ops->backward(r.layer, g, &r, dy);
        end = r.begin;
    }
    return g->rc < 0 ? NULL : dy;
}

/* ---- children ----------------------------------------------------------- */

static int keep_span(ddp_graph_t *g, ddp_layer_t *l, const ddp_value_t *x,
                     const ddp_value_t *y, int first)
{
    struct ddp__span_of_layer *s;

    if (!g->inspect || l->children || !y)
        return g->rc;
    if ((g->rc = grow((void **)&g->span, g->spans, sizeof(*g->span))) < 0)
        return g->rc;
    s = &g->span[g->spans++];
    memset(s, 0, sizeof(*s));
    memcpy(s->info.name, g->path, sizeof(s->info.name));
    s->info.kind = l->ops->kind;
    s->info.in = x->shape;
    s->info.out = y->shape;
    s->info.flops = l->ops->flops ? l->ops->flops(l, x->shape) : 0;
    s->info.training_only = g->aux > 0;
    s->info.options = ddp__layer_options(l, s->info.option);
    if (s->info.options < 0)
        return g->rc = s->info.options;
    s->first_value = first;
    s->end_value = g->values;
    if (l->param_block >= 0) {
        const struct ddp__block *b = &g->params->block[l->param_block];

        for (int i = 0; i < b->params; i++)
            if (b->param[i].role != DDP_RUNNING)
                s->info.params += ddp__param_len(&b->param[i]);
    }
    return 0;
}

ddp_value_t *ddp__layer_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct ddp_shape want;
    ddp_value_t *y;
    int first = g->values, rc;

    if (g->rc < 0 || !x)
        return NULL;
    if ((rc = ddp__layer_shape(l, x->shape, &want)) < 0) {
        g->rc = rc;
        return NULL;
    }
    if (!(y = l->ops->forward(l, g, x)) && g->rc == 0)
        g->rc = ddp__fail(DDP_EINVAL, "%s (%s): forward returned nothing",
                          g->path, l->ops->kind);
    return keep_span(g, l, x, y, first) < 0 ? NULL : y;
}

ddp_value_t *ddp__child_forward(ddp_layer_t *l, int i, ddp_graph_t *g,
                                ddp_value_t *x)
{
    size_t cut = ddp__path_push(g->path, sizeof(g->path), l, i);
    ddp_value_t *y = ddp__layer_forward(l->child[i], g, x);

    g->path[cut] = '\0';
    return y;
}
