/* graph.h - a chain as a list of operations on values */
#ifndef DDP_GRAPH_H
#define DDP_GRAPH_H

#include "runtime/internal.h"

/* What a value is, hence who makes its handles. */
enum ddp__role {
    DDP__ACTIVATION, /* in the lane's block of the segment that writes it
                        first, dropped after its last use */
    DDP__INPUT,      /* one per lane and place in the ring; filled by HOST */
    DDP__PARAM,      /* a layer's block of a bucket of weights */
    DDP__GRAD,       /* the same of the lane's accumulator */
    DDP__TOTALS,     /* the lane's stats */
    DDP__SCALE,      /* of the loss: in the guard */
};

/* A f64 vector that lives as long as an engine: first what OPTIM sees of a
 * step's statistics, DDP__STATS entries, then what decides (guard.c). */
enum ddp__guard {
    DDP__GUARD_SCALE = DDP__STATS, /* LOSS multiplies gradients by it */
    DDP__GUARD_GOOD,               /* steps since it changed */
    DDP__GUARD_SKIPPED,            /* steps that were not applied */
    DDP__GUARD_ROW,                /* of these in a row, overflows left out */
    DDP__GUARD_LAST,               /* number of the last one; -1: none */
    DDP__GUARDS
};

struct ddp_value {
    int id;
    enum ddp__role role;
    struct ddp_shape shape;
    enum ddp_dtype type;
    bool per_sample;
    bool wants;        /* backward shall give its gradient */
    ddp_value_t *base; /* of an alias: whose memory it is; else itself */
    ddp_value_t *grad; /* found by backward for a fused residual */
    int bucket;        /* PARAM, GRAD */
    int segment;       /* of a base ACTIVATION; -1: not placed yet */
    size_t offset;     /* bytes in the bucket, or in the segment's block */
    int first_use, last_use; /* of a base: index of the node; -1: none */
};

enum ddp__phase { DDP__FORWARD, DDP__BACKWARD_X, DDP__BACKWARD_W };

struct ddp__node {
    struct ddp__call call;
    ddp_value_t *buf[DDP_MAX_BUFFERS];
    enum ddp_access access[DDP_MAX_BUFFERS];
    enum ddp__phase phase;
};

/* What one task runs, nodes begin..end-1, and the block of memory where the
 * activations are that it is the first to write. */
struct ddp__segment {
    int begin, end;
    size_t size;  /* of the block, for cap samples; 0: there is none */
    int last_use; /* the last segment that uses it */
};

enum ddp__mode {
    DDP__TRAIN, /* loss, backward */
    DDP__EVAL,  /* loss */
    DDP__INFER, /* output */
    DDP__PULL,  /* training forward, output, backward from a given dy */
};

/* A leaf layer as ddp_chain_inspect() reports it. */
struct ddp__span_of_layer {
    struct ddp_layer_info info;
    int first_value, end_value;
};

/* What a graph is built for. */
struct ddp__graph_spec {
    enum ddp__mode mode;
    struct ddp_shape shape; /* of the input */
    enum ddp_dtype type;    /* of the input: F32, U8 */
    enum ddp_dtype dtype;   /* of activations */
    int cap;                /* samples of a sub-batch */
    int classes, target_len;
    struct ddp__loss loss;
    float mean[4], std[4];
    bool flip;           /* EVAL: the mean of x and its mirror image */
    bool input_gradient; /* PULL: dx too */
    int channels;      /* images of bf16 or f16 get a multiple of it; 0: none */
    bool merged;       /* gradients will be, with those of other lanes */
    double segment_us; /* how long a task shall last at least; 0: a node each */
    /* HOST functions of the first and last nodes. */
    int (*fill)(const struct ddp__task *t, void *arg);
    int (*fill_dy)(const struct ddp__task *t, void *arg); /* PULL */
    int (*output)(const struct ddp__task *t, void *arg);  /* of y; EVAL, which
         may do without: y, target, ids, totals */
    int (*output_dx)(const struct ddp__task *t, void *arg);
    void *arg;
};

struct ddp_graph {
    struct ddp__graph_spec spec;
    struct ddp__params *params;
    ddp_value_t **value;
    int values;
    struct ddp__node **node;
    int nodes;
    int forward_nodes; /* how many come before the loss, or before dy */
    struct ddp__segment *segment;
    int segments;
    struct ddp_record *record;
    int records;
    int rc; /* first failure of building; later calls do nothing */
    enum ddp__phase phase;
    enum ddp_act fuse_act; /* for the next forward to take */
    ddp_value_t *fuse_residual;
    uint32_t masks; /* dropouts so far: the key of the next */
    int aux;        /* auxiliary classifiers around what is being built */
    char path[160];
    bool inspect; /* keep spans */
    struct ddp__span_of_layer *span;
    int spans;
    ddp_value_t *x, *target, *weight, *ids, *totals, *y, *dy, *dx;
};

/* Build the whole graph of a chain whose parameters are params. */
int ddp__graph_new(ddp_graph_t **out, ddp_chain_t *chain,
                   struct ddp__params *params,
                   const struct ddp__graph_spec *spec, bool inspect);
void ddp__graph_free(ddp_graph_t *g);

/* Add a call; c->op and its union are set, views are filled in here. */
void ddp__emit(ddp_graph_t *g, const struct ddp__call *c, int buffers,
               ddp_value_t *const buf[], const enum ddp_access access[]);

/* Forward through a layer that has no parent, or through child i of l. */
ddp_value_t *ddp__layer_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x);
ddp_value_t *ddp__child_forward(ddp_layer_t *l, int i, ddp_graph_t *g,
                                ddp_value_t *x);
/* Backward through the records begin..end-1. */
ddp_value_t *ddp__backward_range(ddp_graph_t *g, int begin, int end,
                                 ddp_value_t *dy);

/* Widen images for convolutions (pad.c). */
void ddp__graph_pad(ddp_graph_t *g);

/* Cut the nodes into segments and place what they write; the last thing that
 * building does (segment.c). */
int ddp__graph_segment(ddp_graph_t *g);

/* Bytes of a value for cap samples. */
size_t ddp__value_size(const ddp_graph_t *g, const ddp_value_t *v);
/* Keep a value; its id and uses are filled in. */
ddp_value_t *ddp__value_new(ddp_graph_t *g, struct ddp_value v);
/* An activation of this shape, in the graph's type. */
ddp_value_t *ddp__value_like(ddp_graph_t *g, struct ddp_shape shape);
/* A value that is not per sample: (1, 1, len). */
ddp_value_t *ddp__value_vector(ddp_graph_t *g, int len, enum ddp_dtype type);
/* The same memory under another shape. */
ddp_value_t *ddp__value_alias(ddp_graph_t *g, ddp_value_t *v,
                              struct ddp_shape shape);
/* a + b, in place where that leaves keep as it is; either may be NULL. */
ddp_value_t *ddp__value_sum(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            const ddp_value_t *keep);
/* The run's loss of y; returns its gradient in training.  aux: 0 for the
 * chain's output, else the weight of an auxiliary classifier. */
ddp_value_t *ddp__graph_loss(ddp_graph_t *g, ddp_value_t *y, float aux);
/* y = act(a + b) as a new value. */
ddp_value_t *ddp__value_add(ddp_graph_t *g, ddp_value_t *a, ddp_value_t *b,
                            enum ddp_act act);
/* dz = dy act'(.) with s as ddp__act_from_y() wants; dy if act is identity. */
ddp_value_t *ddp__act_backward(ddp_graph_t *g, enum ddp_act act, ddp_value_t *s,
                               ddp_value_t *dy);
/* Backward of y = act(f(x, w)): the operations bwd_w and, if x wants it, bwd_x
 * on the call's other fields; returns dx. */
ddp_value_t *ddp__weighted_backward(ddp_graph_t *g, const struct ddp_record *r,
                                    ddp_value_t *dy, struct ddp__call call,
                                    enum ddp__op bwd_w, enum ddp__op bwd_x);
/* What the caller shall fuse, cleared. */
enum ddp_act ddp__take_act(ddp_graph_t *g);
ddp_value_t *ddp__take_residual(ddp_graph_t *g);

/* ---- layers ------------------------------------------------------------- */

/* "name" of child i of l: its own, or its number. */
void ddp__child_name(const ddp_layer_t *l, int i, char *out, size_t size);
/* Append ".name" to path; the old length, for cutting it again. */
size_t ddp__path_push(char *path, size_t size, const ddp_layer_t *l, int i);

/* A layer of several children, which it takes, also on failure. */
ddp_layer_t *ddp__composite_new(size_t size, const struct ddp_layer_ops *ops,
                                int n, ddp_layer_t *const child[]);
int ddp__layer_shape(const ddp_layer_t *l, struct ddp_shape x,
                     struct ddp_shape *y);
/* The activation that the whole of l is, or DDP_IDENTITY. */
enum ddp_act ddp__layer_act(const ddp_layer_t *l);
/* Whether a layer can begin so; else the message says what is wrong. */
bool ddp__init_valid(const struct ddp_init *init, const char *kind);
/* What the last layer inside l can fuse. */
unsigned ddp__layer_fuses(const ddp_layer_t *l);

/* ---- parameters --------------------------------------------------------- */

struct ddp__block {
    ddp_layer_t *layer; /* not owned */
    char prefix[160];
    int bucket;
    size_t offset, len; /* elements, in the bucket */
    int params;
    struct ddp_param param[DDP_MAX_PARAMS];
    size_t param_offset[DDP_MAX_PARAMS]; /* elements in the block */
};

struct ddp__bucket {
    float *w; /* owned; NULL until the parameters are valued */
    size_t len;
    struct ddp__handle handle; /* of w, while bound */
    struct ddp__span *span;    /* owned */
    int spans;
};

/* All parameters of a root chain, as buckets in reverse layer order. */
struct ddp__params {
    struct ddp__block *block;
    int blocks;
    struct ddp__bucket *bucket;
    int buckets;
    size_t total; /* elements of all blocks */
    size_t held;  /* of all buckets, with what is between their blocks */
    bool valued;  /* buckets have memory, with values in it */
    ddp_t *ddp;   /* bound to; NULL: not */
    struct ddp__params *next; /* in ddp's list */
};

/* The parameters of a root chain, made at first use; their values when those
 * are first read, set or bound. */
struct ddp__params *ddp__params_of(ddp_chain_t *chain);
void ddp__params_free(struct ddp__params *p);
/* Memory for values that are all about to be set. */
int ddp__params_reserve(struct ddp__params *p);
int ddp__params_bind(struct ddp__params *p, ddp_t *ddp);
void ddp__params_unbind(struct ddp__params *p);
/* Let the host at the weights between begin and end. */
int ddp__params_begin(struct ddp__params *p, bool write);
void ddp__params_end(struct ddp__params *p);
/* Find "block.param"; DDP_EINVAL. */
int ddp__params_find(const struct ddp__params *p, const char *name,
                     const struct ddp__block **b, int *i);
/* "block.param" of the element at a place in all buckets. */
void ddp__params_name(const struct ddp__params *p, size_t place, char *out,
                      size_t size);
/* Copy between our order of elements and PyTorch's. */
void ddp__param_export(const struct ddp_param *p, const float *in, float *out);
void ddp__param_import(const struct ddp_param *p, const float *in, float *out);
size_t ddp__param_len(const struct ddp_param *p);
/* "block.param" */
enum { DDP__PARAM_NAME = 160 };
void ddp__param_name(const struct ddp__block *b, int i,
                     char out[DDP__PARAM_NAME]);

#endif
