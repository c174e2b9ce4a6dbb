/* value.h - tensors of a graph: what they are, and where
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_VALUE_H
#define DDP_VALUE_H

#include "ops.h"

/* The kind of a value, which decides who creates its handles. */
enum ddp__role {
    DDP__ACTIVATION, /* in the lane's arena of the segment that writes it
                        first, dropped after its last use */
    DDP__INPUT,      /* one per lane and place in the ring; filled by HOST */
    DDP__PARAM,      /* a layer's block of a bucket of weights */
    DDP__TEACHER,    /* the same of the teacher's weights */
    DDP__GRAD,       /* of the lane's accumulator */
    DDP__LANE_STATS, /* sums of loss and counts of the lane */
    DDP__SCALE,      /* of the loss: in the scaler */
    DDP__LANE_SUM,   /* of a batch norm, over what the lane has of a step */
    DDP__STEP_SUM,   /* the same over all lanes */
};

/* An f64 vector that lives as long as an engine: first the step's statistics
 * for OPTIM, DDP__STATS entries, then the state of the decision
 * (loss_scaler.c). */
enum ddp__loss_scaler {
    DDP__SCALER_SCALE = DDP__STATS, /* LOSS multiplies gradients by it */
    DDP__SCALER_GOOD,               /* steps since it changed */
    DDP__SCALER_SKIPPED,            /* steps that were not applied */
    DDP__SCALER_ROW,                /* consecutive ones, without overflows */
    DDP__SCALER_LAST,               /* number of the last one; -1: none */
    DDP__SCALER_NORM,               /* squared norm of the last gradients */
    DDP__SCALERS
};

struct ddp_value {
    int id;
    enum ddp__role role;
    struct ddp_shape shape;
    enum ddp_dtype type;
    bool per_sample;
    bool needs_gradient; /* backward computes its gradient */
    ddp_value_t *base;   /* of an alias: the owner of the memory; else itself */
    ddp_value_t *grad;   /* found by backward for a fused residual */
    int bucket;          /* PARAM, TEACHER, GRAD; of sums: their number */
    int segment;         /* of a base ACTIVATION; -1: not placed yet */
    int arena;           /* of that segment: where it lies */
    size_t offset;       /* bytes in the bucket, or in the arena */
    int first_use, last_use; /* of a base: index of the node; -1: none */
};

/* Keep a value; its id and uses are filled in. */
ddp_value_t *ddp__value_new(ddp_graph_t *g, struct ddp_value v);
/* An activation of this shape, in the graph's type. */
ddp_value_t *ddp__value_like(ddp_graph_t *g, struct ddp_shape shape);
/* A value that is not per sample: (1, 1, len). */
ddp_value_t *ddp__value_vector(ddp_graph_t *g, int len, enum ddp_dtype type);
/* The same memory under another shape. */
ddp_value_t *ddp__value_alias(ddp_graph_t *g, ddp_value_t *v,
                              struct ddp_shape shape);

/* Sums that operations of each sub-batch add to, which the next node does, and
 * that the nodes after it may read once they are those of the whole step. */
struct ddp__sums {
    ddp_value_t *lane, *step;
};
struct ddp__sums ddp__value_sums(ddp_graph_t *g, int len);

#endif
