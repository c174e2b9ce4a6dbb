/* graph_def.c - the graph of a chain as TensorFlow's GraphDef
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The messages are those of tensorboard/compat/proto: graph.proto,
 * node_def.proto, attr_value.proto, tensor_shape.proto.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "train/graph_def.h"

enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };
enum { ATTR_LIST = 1, ATTR_TEXT = 2, ATTR_INT = 3, ATTR_FLOAT = 4 };
enum { LIST_SHAPE = 7, SHAPE_DIM = 2, DIM_SIZE = 1 };

/* Of TensorFlow's graphs, the oldest that has all of this. */
enum { PRODUCER = 22 };

struct drawing {
    const ddp_graph_t *g;
    int *writer;       /* by id of a base value: its last writer + 1; owned */
    char (*name)[200]; /* by node; owned */
    struct ddp__proto node, attr;
};

/* ---- names -------------------------------------------------------------- */

/* The operation's result. */
static const ddp_value_t *written(const struct ddp__node *n)
{
    for (int i = 0; i < n->call.buffers; i++)
        if (n->buf[i] && n->access[i] != DDP_READ)
            return n->buf[i];
    return NULL;
}

static const struct ddp_layer_info *layer_of(const ddp_graph_t *g,
                                             const ddp_value_t *v)
{
    for (int i = 0; v && i < g->spans; i++)
        if (v->id >= g->span[i].first_value && v->id < g->span[i].end_value)
            return &g->span[i].info;
    return NULL;
}

static const char *kind_of(const struct ddp__node *n)
{
    return n->call.op == DDP__OP_USER ? "custom"
                                      : ddp__signature[n->call.op].name;
}

static bool is_taken(const struct drawing *d, int node)
{
    for (int i = 0; i < node; i++)
        if (!strcmp(d->name[i], d->name[node]))
            return true;
    return false;
}

static void name_node(struct drawing *d, int node)
{
    const struct ddp__node *n = d->g->node[node];
    const struct ddp_layer_info *l = layer_of(d->g, written(n));
    const char *layer = l ? l->name : "", *slash = *layer ? "/" : "";
    char *name = d->name[node];
    size_t size = sizeof(d->name[node]);

    snprintf(name, size, "%s", *layer ? layer : kind_of(n));
    if (*layer && is_taken(d, node))
        snprintf(name, size, "%s%s%s", layer, slash, kind_of(n));
    for (int i = 1; is_taken(d, node); i++)
        snprintf(name, size, "%s%s%s_%d", layer, slash, kind_of(n), i);
    for (size_t i = 0; i < strlen(layer); i++)
        if (name[i] == '.')
            name[i] = '/';
}

/* ---- attributes --------------------------------------------------------- */

/* What d->attr has. */
static void add_attr(struct drawing *d, const char *name)
{
    struct ddp__proto entry = {0};

    ddp__proto_text(&entry, MAP_KEY, name);
    ddp__proto_message(&entry, MAP_VALUE, &d->attr);
    ddp__proto_message(&d->node, NODE_ATTR, &entry);
    ddp__proto_free(&entry);
}

static void add_dim(struct ddp__proto *shape, int64_t size)
{
    struct ddp__proto dim = {0};

    ddp__proto_int(&dim, DIM_SIZE, (uint64_t)size);
    ddp__proto_message(shape, SHAPE_DIM, &dim);
    ddp__proto_free(&dim);
}

/* (any number of samples, h, w, c), which the page shows at edges. */
static void add_shape(struct drawing *d, struct ddp_shape s)
{
    struct ddp__proto shape = {0}, list = {0};

    add_dim(&shape, -1);
    if (s.h * s.w > 1) {
        add_dim(&shape, s.h);
        add_dim(&shape, s.w);
    }
    add_dim(&shape, s.c);
    ddp__proto_message(&list, LIST_SHAPE, &shape);
    ddp__proto_message(&d->attr, ATTR_LIST, &list);
    add_attr(d, "_output_shapes");
    ddp__proto_free(&shape);
    ddp__proto_free(&list);
}

static void add_option(struct drawing *d, const struct ddp_option *o)
{
    if (o->text)
        ddp__proto_text(&d->attr, ATTR_TEXT, o->text);
    else if (fabs(o->value) < 1e9 && o->value == floor(o->value))
        ddp__proto_int(&d->attr, ATTR_INT, (uint64_t)(int64_t)o->value);
    else
        ddp__proto_float(&d->attr, ATTR_FLOAT, (float)o->value);
    add_attr(d, o->name);
}

static void add_layer(struct drawing *d, const struct ddp_layer_info *l)
{
    ddp__proto_text(&d->attr, ATTR_TEXT, l->kind);
    add_attr(d, "layer");
    if (l->params) {
        ddp__proto_int(&d->attr, ATTR_INT, l->params);
        add_attr(d, "parameters");
    }
    for (int i = 0; i < l->options; i++)
        add_option(d, &l->option[i]);
}

/* ---- nodes -------------------------------------------------------------- */

static const char input_name[] = "input";

/* The nodes that have written what this one reads; d: NULL where the program's
 * samples are. */
static void add_inputs(struct drawing *d, const struct ddp__node *n)
{
    for (int i = 0; i < n->call.buffers; i++) {
        const ddp_value_t *v = n->buf[i];
        int from = v ? d->writer[v->base->id] : 0;

        if (!v || n->access[i] == DDP_WRITE)
            continue;
        if (v->base == d->g->x)
            ddp__proto_text(&d->node, NODE_INPUT, input_name);
        else if (from)
            ddp__proto_text(&d->node, NODE_INPUT, d->name[from - 1]);
    }
}

static void add_node(struct drawing *d, int node, struct ddp__proto *def)
{
    const struct ddp__node *n = d->g->node[node];
    const ddp_value_t *y = written(n);
    const struct ddp_layer_info *l = layer_of(d->g, y);

    name_node(d, node);
    ddp__proto_text(&d->node, NODE_NAME, d->name[node]);
    ddp__proto_text(&d->node, NODE_OP, kind_of(n));
    add_inputs(d, n);
    if (l)
        add_layer(d, l);
    if (y)
        add_shape(d, y->shape);
    for (int i = 0; i < n->call.buffers; i++)
        if (n->buf[i] && n->access[i] != DDP_READ)
            d->writer[n->buf[i]->base->id] = node + 1;
    ddp__proto_message(def, GRAPH_NODE, &d->node);
}

static void add_input(struct drawing *d, struct ddp__proto *def)
{
    ddp__proto_text(&d->node, NODE_NAME, input_name);
    ddp__proto_text(&d->node, NODE_OP, "Placeholder");
    add_shape(d, d->g->x->shape);
    ddp__proto_message(def, GRAPH_NODE, &d->node);
}

int ddp__graph_def(const ddp_graph_t *g, struct ddp__proto *def)
{
    struct drawing d = {
        .g = g,
        .writer = calloc((size_t)g->values + 1, sizeof(*d.writer)),
        .name = calloc((size_t)g->nodes + 1, sizeof(*d.name)),
    };
    struct ddp__proto versions = {0};
    bool memory = d.writer && d.name;

    if (memory) {
        add_input(&d, def);
        for (int i = 0; i < g->nodes; i++)
            if (!ddp__op_is(g->node[i]->call.op, DDP__IS_HOST))
                add_node(&d, i, def);
        ddp__proto_int(&versions, VERSIONS_PRODUCER, PRODUCER);
        ddp__proto_message(def, GRAPH_VERSIONS, &versions);
    }
    ddp__proto_free(&versions);
    ddp__proto_free(&d.node);
    ddp__proto_free(&d.attr);
    free(d.writer);
    free(d.name);
    return memory && !def->lacks_memory
               ? 0
               : ddp__fail(DDP_ENOMEM, "out of memory for a graph");
}
