/* graph.h - a chain as a list of operations on values
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GRAPH_H
#define DDP_GRAPH_H

#include "graph/node.h"
#include "graph/params.h"
#include "graph/segment.h"
#include "ops.h"

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

/* Buffers of the HOST calls of a graph: what fill writes, what output gets. */

/* A chain whose outputs another one learns: see ddp_train_config. */
struct ddp__teaching {
    ddp_chain_t *chain; /* NULL: there is none */
    struct ddp__params *params;
    double weight, temperature;
};

/* What a graph is built for. */
struct ddp__graph_spec {
    const ddp_t *ddp; /* where it will run; NULL: nowhere */
    enum ddp__mode mode;
    struct ddp_shape shape; /* of the input */
    enum ddp_dtype type;    /* of the input: F32, U8 */
    enum ddp_dtype dtype;   /* of activations */
    int cap;                /* samples of a sub-batch */
    int fewer[DDP__FEWER];  /* of shorter ones; 0: none */
    int least;              /* of the smallest one; 0: unknown */
    int classes, target_len;
    bool shares; /* of each class are the targets, and not a class */
    struct ddp__loss loss;
    struct ddp__teaching teach; /* TRAIN */
    float mean[4], std[4];
    bool flip;           /* EVAL: the mean of x and its mirror image */
    bool input_gradient; /* PULL: dx too */
    int channels;      /* images of bf16 or f16 get a multiple of it; 0: none */
    bool on_gpus;      /* alone: all gradients of x are added where they are
                          computed; see `inverse` of batch norm */
    bool folds;        /* batch norms of evaluation become a part of the
                          convolutions before them */
    bool gates;        /* backward of batch norms multiplies by gates: see
                          BN_GATED_BWD */
    bool defers;       /* batch norms are joined with the convolutions behind
                          them: see NORM_CONV_FWD and NORM_CONV_BWD_X */
    bool merged;       /* gradients are merged with those of other lanes */
    double segment_us; /* minimum duration of a task; 0: one node per task */
    double forward_us; /* of one of the forward pass; 0: the same */
    const bool *frozen; /* by block of parameters: not trained; NULL: none */
    bool sync_bn; /* TRAIN: batch norms have the statistics of a whole step */
    bool split;   /* idle workers help with kernels: see struct ddp__call */
    bool joined;  /* host functions and custom kernels share tasks with
                     neighbouring nodes */
    /* HOST functions of the first and last nodes. */
    int (*fill)(const struct ddp__task *t, void *arg);
    int (*fill_dy)(const struct ddp__task *t, void *arg); /* PULL */
    /* Of y; EVAL, optional: y, target, ids, stats. */
    int (*output)(const struct ddp__task *t, void *arg);
    int (*output_dx)(const struct ddp__task *t, void *arg);
    void *arg;
};

/* What backward is to make of the gradient dy that it gets next: see
 * BN_GATED_BWD.  dm NULL: nothing. */
struct ddp__gate {
    ddp_value_t *s, *dm;
};

struct ddp_graph {
    struct ddp__graph_spec spec;
    struct ddp__params *params;
    ddp_value_t **value;
    int values;
    struct ddp__node **node;
    int nodes;
    int forward_nodes; /* number of nodes before the loss, or before dy */
    struct ddp__segment *segment;
    int segments;
    struct ddp__arena *arena;
    int arenas;
    ddp_value_t **sum; /* those of lanes, in the order of their nodes */
    int sums;
    struct ddp_record *record;
    int records;
    int rc; /* first failure of building; later calls do nothing */
    enum ddp__phase phase;
    enum ddp_act fuse_act; /* for the next forward to use */
    ddp_value_t *fuse_residual;
    struct ddp__gate gate; /* for the next backward, of a batch norm */
    uint32_t masks;        /* dropouts so far: the key of the next */
    int aux; /* auxiliary classifiers around what is being built */
    char path[160];
    bool teaching; /* the teacher is being built */
    bool inspect;  /* keep spans */
    struct ddp__span_of_layer *span;
    int spans;
    ddp_value_t *x, *target, *weight, *ids, *stats, *y, *dy, *dx, *taught;
};

/* Whether a layer has parameters that are trained. */
bool ddp__graph_trains(const ddp_graph_t *g, const ddp_layer_t *l);

/* Build the whole graph of a chain whose parameters are params. */
int ddp__graph_new(ddp_graph_t **out, ddp_chain_t *chain,
                   struct ddp__params *params,
                   const struct ddp__graph_spec *spec, bool inspect);
void ddp__graph_free(ddp_graph_t *g);

/* A step goes through a graph in stages: all sub-batches are at the end of one,
 * where a sum is complete, before any begins the next.  Without sums there is
 * one.  The node that stage k, not the last, ends before; whether a stage ends
 * with node i. */
int ddp__graph_stage_end(const ddp_graph_t *g, int k);
bool ddp__graph_ends_stage(const ddp_graph_t *g, int i);

/* The run's loss of y; returns its gradient in training.  aux: 0 for the
 * chain's output, else the weight of an auxiliary classifier. */
ddp_value_t *ddp__graph_loss(ddp_graph_t *g, ddp_value_t *y, float aux);

/* The input or output of graphs that never run. */
int ddp__graph_no_host(const struct ddp__task *t, void *arg);

/* Numbers of a sample. */
static inline size_t ddp__shape_len(struct ddp_shape s)
{
    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

#endif
