/* depthwise_v16.h - loops over the images of a depthwise layer, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_V16_H
#define DDP_DEPTHWISE_V16_H

#include "cpu/norm/bn_bwd_loops.h"
#include "cpu/vector/unit_v16.h"
#include "depthwise_row.h"

#ifdef DDP__X86

enum {
    DDP__DEPTHWISE_PIXELS = 7, /* of a result of a forward pass: images are
                                  mostly multiples of 7 wide */
    DDP__DEPTHWISE_SPREAD = 8  /* of a data gradient of stride 2 */
};

/* A batch norm that reads a data gradient of f32 as it is made, for the sums of
 * its backward pass, or for its dx, which is y. */
struct ddp__depthwise_norm {
    const float *x;
    struct ddp__bn_params p;
    enum ddp_act act; /* DDP_SILU, or one whose slope at z is z m + b between
                         low and high, beyond these 0 and top */
    float low, high, m, b, top;
    bool dx;     /* it is made, else the sums */
    float *part; /* whole vectors of sums of dz, then of dz (x - mean), of a row
                    of results; zeros before */
    double *sum;
    size_t apart; /* from sums of dz to those of dz (x - mean) */
};

/* The task: y of x; of a data gradient, dx of dy.  Words are those of
 * depthwise_row.h. */
struct ddp__depthwise_work {
    const float *x;
    float *w;         /* packed */
    float *y, *block; /* block: results of pixels on their way to y, or NULL */
    int n, h, width, oh, ow, top, left;
    ptrdiff_t c;        /* words of a pixel */
    int vectors, group; /* of words; how many go over an image at a time */
    ptrdiff_t ahead;    /* words from what is read first to what is fetched;
                           0: a row */
    bool streams;
    const struct ddp__bn_clamp *norm; /* of x, f32 of a forward pass; or NULL */
    const struct ddp__depthwise_norm *reader; /* of the results; or NULL */
};

/* Filters of side x side; spread: of a data gradient of stride 2; b: bf16. */
void ddp__depthwise_images(const struct ddp__depthwise_work *u, int side,
                           int step, bool spread, bool b);

#endif
#endif
