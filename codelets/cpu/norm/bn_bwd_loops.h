/* bn_bwd_loops.h - loops of the backward pass of batch normalisation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_BWD_LOOPS_H
#define DDP_BN_BWD_LOOPS_H

#include "cpu/cpu.h"

/* Where dz comes from. */
enum ddp__bn_source {
    DDP__FROM_DY,     /* no activation: dz = dy */
    DDP__FROM_DZ,     /* dy holds dz, in f32 */
    DDP__FROM_X,      /* dz = x - mean: sums of the forward pass */
    DDP__FROM_MASK,   /* dz = dy where a mask has ones */
    DDP__FROM_X_RELU, /* the slope of an activation is known from x */
    DDP__FROM_X_RELU6,
    DDP__FROM_X_SILU,
    DDP__FROM_X_HARDSWISH,
    DDP__FROM_RELU, /* ... from y */
    DDP__FROM_RELU6,
    DDP__FROM_SIGMOID,
    DDP__FROM_TANH,
};

/* Those of dy in the type of activations. */
#define DDP__BN_SOURCES(X)                                                     \
    X(DDP__FROM_DY)                                                            \
    X(DDP__FROM_X_RELU)                                                        \
    X(DDP__FROM_X_RELU6)                                                       \
    X(DDP__FROM_X_SILU)                                                        \
    X(DDP__FROM_X_HARDSWISH)                                                   \
    X(DDP__FROM_RELU)                                                          \
    X(DDP__FROM_RELU6)                                                         \
    X(DDP__FROM_SIGMOID)                                                       \
    X(DDP__FROM_TANH)

/* Parameters over a wide row, and those of dx = a (dz - k1 - (x - mean) k2) */
struct ddp__bn_params {
    const float *mean, *a, *shift;
    const float *k1, *k2;
};

/* Where a block of rows is. */
struct ddp__bn_part {
    const void *x, *y, *dy;
    const uint8_t *mask; /* instead of y; or NULL */
    void *dx, *dr;       /* as floats while in a block of results */
    float *s1, *s2;      /* sums of the block's columns */
    size_t rows, width, len;
};

enum ddp__bn_source ddp__bn_source_of(enum ddp_act act, bool residual);

/* s1 = sum of dz, s2 = sum of dz (x - mean), of each column. */
void ddp__bn_bwd_sum(const struct ddp__bn_params *p,
                     const struct ddp__bn_part *k, enum ddp__bn_source from,
                     bool b);

/* dr = dz, of a block with a residual. */
void ddp__bn_bwd_keep(const struct ddp__bn_params *p,
                      const struct ddp__bn_part *k, enum ddp__bn_source from,
                      bool b);

/* dx from dz and its sums. */
void ddp__bn_bwd_spread(const struct ddp__bn_params *p,
                        const struct ddp__bn_part *k, enum ddp__bn_source from,
                        bool b);

#endif
