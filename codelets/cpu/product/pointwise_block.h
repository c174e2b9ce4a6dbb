/* pointwise_block.h - some pixels of a 1x1 convolution of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_POINTWISE_BLOCK_H
#define DDP_CPU_POINTWISE_BLOCK_H

#include "cpu/conv/shape.h"

/* Rows of a block, but of a tall one. */
enum { DDP__POINTWISE_ROWS = 56 };

/* A layer, and how it is computed. */
struct ddp__pointwise_run {
    const struct ddp__conv_shape *s;
    const float *x, *w, *bias;
    float *y;
    size_t rows, c, o, all; /* all: columns of w */
    size_t bands, groups;   /* parts: of rows, of panels */
    size_t block, ahead;    /* rows of a block; floats to the pixels that are
                             * fetched with its first panel, 0: fetches says */
    float low, high;        /* of results, but with SiLU */
    bool strides;           /* x has pixels that are left out */
    bool foresees;          /* what is added is fetched before */
    bool sum, streams, fetches; /* y goes past the caches, x comes from there */
};

/* Rows by a part's panels from `first` to before `end`, channels. */
struct ddp__pointwise_block {
    size_t row, rows, first, end;
};

/* y of a block, while pixels of the next one are fetched.  room: for the pixels
 * of one, where there are strides. */
void ddp__pointwise_block(const struct ddp__pointwise_run *u,
                          const struct ddp__pointwise_block *b, float *room);

#endif
