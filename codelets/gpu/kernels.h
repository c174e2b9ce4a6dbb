/* kernels.h - libddp's kernels, and their arguments
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For C and C++, without CUDA's headers.  The bodies are in elementwise.h,
 * columns.h, norm.h, norm_step.h, pooling.h, losses.h and updates.h; the files
 * of the same names that end in .cu make kernels of them.
 */
#ifndef DDP_KERNELS_H
#define DDP_KERNELS_H

#include "ddp.h"

enum {
    DDP__WIDTH = 8,     /* values that a thread takes at once */
    DDP__THREADS = 256, /* of a block */
};

/* X (kernel, its arguments).  Items: bodies that a launch calls `items`
 * times.  Blocks: bodies that each of `blocks` blocks calls.  Plain: blocks
 * that see no activations, the others are made for each `type` of them. */
#define DDP__ELEMENTWISE_ITEMS(X)                                              \
    X(input, input)                                                            \
    X(act_fwd, flat)                                                           \
    X(act_bwd, flat)                                                           \
    X(add, flat)                                                               \
    X(accumulate, accumulate)                                                  \
    X(copy_channels, copy)                                                     \
    X(scale_fwd, scale)                                                        \
    X(dropout, dropout)
#define DDP__POOLING_ITEMS(X)                                                  \
    X(max_pool_fwd, pool)                                                      \
    X(max_pool_bwd, pool)                                                      \
    X(mean_pool_fwd, pool)                                                     \
    X(mean_pool_bwd, pool)
#define DDP__COLUMNS_BLOCKS(X)                                                 \
    X(column_sums, column_sums)                                                \
    X(column_finish, column_finish)
#define DDP__NORM_BLOCKS(X)                                                    \
    X(bn_measure, bn)                                                          \
    X(bn_normalise, bn)                                                        \
    X(bn_sums, bn)                                                             \
    X(bn_spread, bn)
#define DDP__NORM_PLAIN(X)                                                     \
    X(bn_statistics, bn)                                                       \
    X(bn_gradients, bn)                                                        \
    X(bn_collect, bn)                                                          \
    X(bn_moments, bn)
#define DDP__LOSSES_BLOCKS(X) X(loss_rows, loss)
#define DDP__LOSSES_PLAIN(X) X(loss_sum, loss)
#define DDP__UPDATES_PLAIN(X)                                                  \
    X(merge_stats, merge_stats)                                                \
    X(sqnorm, optim)                                                           \
    X(sqnorm_sum, sqnorm_sum)                                                  \
    X(units, optim)                                                            \
    X(outputs, optim)                                                          \
    X(project, optim)                                                          \
    X(trust, optim)                                                            \
    X(trust_sum, optim)                                                        \
    X(optim, optim)                                                            \
    X(ema, ema)

#define DDP__KERNELS(X)                                                        \
    DDP__ELEMENTWISE_ITEMS(X)                                                  \
    DDP__POOLING_ITEMS(X)                                                      \
    DDP__COLUMNS_BLOCKS(X)                                                     \
    DDP__NORM_BLOCKS(X)                                                        \
    DDP__NORM_PLAIN(X)                                                         \
    DDP__LOSSES_BLOCKS(X)                                                      \
    DDP__LOSSES_PLAIN(X)                                                       \
    DDP__UPDATES_PLAIN(X)

/* `wide`: all activations lie so that DDP__WIDTH of them can be had by 16-byte
 * accesses, and the channels come in such groups. */

/* ---- elementwise.h ------------------------------------------------------ */

/* y[p, i] = (x[p, i] - mean[i]) factor[i] for i < c, 0 for c <= i < cy, of all
 * pixels p.  All channels from the fourth on are treated equally. */
struct ddp__k_input {
    unsigned items;
    enum ddp_dtype type;
    bool wide;  /* y */
    bool bytes; /* x is u8, else f32 */
    const void *x;
    void *y;
    size_t len; /* of y */
    int c, cy;
    int flip; /* pixels of a row to swap; 0: none are */
    float mean[4], factor[4];
};

/* y = act(a);  y = b act'(a);  y = act(a + b).  y may be a or b. */
struct ddp__k_flat {
    unsigned items;
    enum ddp_dtype type;
    bool wide;
    enum ddp_act act;
    const void *a, *b;
    void *y;
    size_t len;
};

/* g[row, i] (+)= x[row, i], i < c, of rows that have cx values in x. */
struct ddp__k_accumulate {
    unsigned items;
    enum ddp_dtype type; /* of x; g is f32 */
    bool wide;
    bool add;
    const void *x;
    float *g;
    size_t rows;
    int c, cx;
};

/* wide[..., at + i] = narrow[..., i], or the other way; or that is added. */
struct ddp__k_copy {
    unsigned items;
    enum ddp_dtype type;
    bool wide;
    bool to_large, add;
    const void *from;
    void *to;
    int small, large, at; /* channels */
};

/* y = x s, with one s for each sample and channel. */
struct ddp__k_scale {
    unsigned items;
    enum ddp_dtype type;
    bool wide;
    const void *x, *s;
    void *y;
    unsigned pixels; /* of a sample */
    int c;
};

struct ddp__k_dropout {
    unsigned items;
    enum ddp_dtype type;
    bool wide;
    bool whole, narrow_ids; /* ids are i32, else i64 */
    const void *x, *ids;
    void *y;
    size_t len; /* of a sample */
    uint64_t seed;
    uint32_t layer;
    float p, factor;
};

/* ---- pooling.h ---------------------------------------------------------- */

struct ddp__k_axis {
    int in, out, size, stride, before, after;
    bool adaptive;
};

struct ddp__k_pool {
    unsigned items;
    enum ddp_dtype type;
    bool wide;
    bool narrow_index; /* u8, else i32 */
    bool count_pad;
    struct ddp__k_axis v, h;
    int c;
    const void *x; /* dy when going backward */
    void *y;       /* dx */
    void *index;
};

/* ---- columns.h ---------------------------------------------------------- */

/* How sums over pixels, by channel, are cut into blocks: rows of c values in
 * `segments` of equal length that are summed apart.  A block takes a tile of
 * channels of a chunk of rows. */
struct ddp__columns {
    unsigned segments, chunks, tiles;
    unsigned across; /* threads side by side; the others go down the rows */
    size_t rows;     /* of a segment */
    size_t chunk;    /* rows of a chunk */
    int c;
};

/* Adding up chunks: a block has DDP__ABREAST channels of a segment, and
 * DDP__DEPTH threads for each. */
enum { DDP__ABREAST = 32, DDP__DEPTH = DDP__THREADS / DDP__ABREAST };

/* part[segment, chunk, i] = sum of a, or of a b;  and, with s, y = b s[segment]
 */
struct ddp__k_column_sums {
    unsigned blocks;
    enum ddp_dtype type;
    bool wide;
    struct ddp__columns k;
    const void *a, *b, *s;
    void *y;
    float *part;
};

/* out[segment, i] (+)= factor times the sum over chunks, over `over` if that
 * is there; 0 where that is 0 */
struct ddp__k_column_finish {
    unsigned blocks;
    enum ddp_dtype type; /* of out */
    struct ddp__columns k;
    const float *part;
    void *out;
    const void *over; /* of the type and the size of out, or NULL */
    float factor;
    bool add;
};

/* ---- norm.h ------------------------------------------------------------- */

/* Batch norm, forward and backward.  m = k.rows values per channel. */
struct ddp__k_bn {
    unsigned blocks;
    enum ddp_dtype type;
    bool wide;
    struct ddp__columns k;
    enum ddp_act act;
    float eps;
    int n;
    const void *x, *r, *dy;
    void *y;            /* forward; read when going backward without mask */
    uint8_t *mask;      /* of y > 0, a byte for each group of channels; NULL */
    const float *w;     /* scale[c], shift[c] */
    const float *mean;  /* mean[c], var[c]: what to normalise by */
    float *stat;        /* the same, of this sub-batch */
    bool inverse;       /* there 1 / sqrt(var + eps) takes the place of var */
    bool scales;        /* bn_normalise: mean and shift are 0 */
    float *part;        /* partial results of chunks: two values of a channel */
    float *sum;         /* sum of dz [c], of dz xhat [c] */
    double *total;      /* over the sub-batches of a step, NULL: there are none
                           such; forward: sum of x [c], of x x [c], number of
                           values; backward: sum of dz [c], of dz (x - mean) [c] */
    const float *count; /* values that mean is of; NULL: m */
    float *g;
    bool add; /* to g and total */
    void *dx, *dr;
};

/* ---- losses.h ----------------------------------------------------------- */

struct ddp__k_loss {
    unsigned blocks; /* loss_rows: one per sample */
    enum ddp_dtype type, type_dx;
    enum ddp_loss_kind kind;
    bool classes; /* it compares with label, else with target */
    bool shares;  /* of classes, with target instead */
    float smoothing, threshold, gamma, alpha;
    float aux;             /* factor of an auxiliary loss; 0: the chain's own */
    float taught;          /* share of the loss that is left out */
    const float *positive; /* what the positive part of each class counts; NULL:
                              1 */
    int n, cap;
    size_t len;
    const void *x;
    void *dx; /* NULL: not wanted */
    const int32_t *label;
    const float *target, *weight;
    const double *scale; /* of dx; NULL: 1 */
    double *loss;        /* of each sample, weighted */
    int *rank;           /* of its label */
    double *stats;
    bool add;
};

/* ---- updates.h ---------------------------------------------------------- */

struct ddp__k_merge_stats {
    unsigned blocks;
    double *dst;
    const double *src;
    size_t len;
};

enum {
    DDP__SPANS = 112, /* of one launch, at most: all arguments are below 4 KB */
    DDP__UNIT_SPANS = 32, /* likewise, if outputs are clipped */
    DDP__TILE = 2048,     /* elements of a block */
};

struct ddp__k_span {
    size_t begin, end;
    float decay;    /* of the gradient */
    float keep;     /* factor of w: decoupled decay */
    float momentum; /* of running statistics */
    bool running;
};

/* What SQNORM finds out: see enum ddp__norm. */
struct ddp__k_norms {
    double squares, trained, running;
};

/* Of a parameter, or a part of it. */
struct ddp__k_squares {
    double w, step;
};

/* AdamP: of the weights of an output, their gradients g, and Adam's steps. */
struct ddp__k_products {
    double ww, gg, wg, ws;
};

/* The outputs of a span whose gradients are clipped by the norm of their
 * weights, or which AdamP needs: elements of one, 0: there are none; its first
 * among those of all spans. */
struct ddp__k_units {
    unsigned len, first;
};

/* A run of ascending spans of a bucket, from tile `first` on. */
struct ddp__k_optim {
    unsigned blocks;
    enum ddp_optimizer_kind kind;
    bool corrects;  /* needs what depends on the number of updates */
    bool layerwise; /* LAMB, LARS: rules that add the decay themselves */
    size_t first;
    int spans;
    const double *stats, *norm;
    const float *g;
    float *w, *m, *v, *x;
    float *slow;        /* of Lookahead, or NULL */
    int lookahead;      /* updates between its uses */
    bool projects;      /* AdamP */
    unsigned units;     /* outputs that are clipped, or AdamP's */
    float *unit_factor; /* of each of them; AdamP: what its step has
                           of its weights */
    struct ddp__k_products *products; /* AdamP: of each output */
    struct ddp__k_norms *part;        /* SQNORM: of each block */
    struct ddp__k_squares *squares;   /* layerwise: of what block k and span i
                                         share at k + i */
    float *trust;                     /* of each span; layerwise: factor of the
                                         step; AdamP: of the decay */
    size_t begin;                     /* SQNORM: of g, among all parameters */
    void *half;                       /* NULL, or a copy of w in half_type */
    enum ddp_dtype half_type;
    float clip_norm, clip_value, clip_unit, lr, momentum, beta1, beta2, eps;
    struct ddp__k_units unit[DDP__UNIT_SPANS];
    struct ddp__k_span span[DDP__SPANS];
};

/* The norms of count parts, merged, are written to norm or added to it. */
struct ddp__k_sqnorm_sum {
    unsigned blocks;
    const struct ddp__k_norms *part;
    unsigned count;
    double *norm;
    bool add;
};

/* dst += share (src - dst), unless the divisor of stats is 0 */
struct ddp__k_ema {
    unsigned blocks; /* DDP__TILE elements each */
    float share;
    float *dst;
    const float *src;
    const double *stats;
    size_t len;
};

/* ---- launching ---------------------------------------------------------- */

/* Put a kernel into a stream; 0, or a cudaError_t. */
#ifdef __cplusplus
extern "C" {
#endif
#define X(name, params)                                                        \
    int ddp__k_##name(const struct ddp__k_##params *p, void *stream);
DDP__KERNELS(X)
#undef X
#ifdef __cplusplus
}
#endif

#endif
