/* bn.h - what both directions of batch normalisation share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Narrow rows would leave vectors half empty, so `fold` pixels make one wide
 * row of fold c values; arrays of parameters repeat the c channels as often.
 * The last wide row may be shorter.
 */
#ifndef DDP_BN_H
#define DDP_BN_H

#include <math.h>

#include "cpu/cpu.h"
#include "cpu/store.h"

enum {
    DDP__BN_BLOCK = 64, /* rows summed in f32 before they go to f64 */
    DDP__BN_SPARE = 32
};

struct ddp__rows {
    size_t c, fold, width; /* width = fold c */
    size_t rows, tail;     /* whole wide rows; values in the last one */
    size_t chunk;          /* wide rows of a block of results */
    bool b;                /* bf16 */
    bool stream;           /* results go past the caches */
    bool direct;           /* results need no block */
};

/* Rows of buffer i of a task. */
static inline struct ddp__rows ddp__bn_rows(const struct ddp__task *t, int i)
{
    size_t m = ddp__rows(t, i);
    struct ddp__rows r = {.c = (size_t)t->call->buf[i].shape.c,
                          .b = ddp__is_bf16(t, i)};

    r.fold = r.c >= 32 ? 1 : 64 / r.c;
    r.width = r.c * r.fold;
    r.rows = m / r.fold;
    r.tail = m % r.fold * r.c;
    r.chunk = r.width > DDP__BLOCK ? 1 : DDP__BLOCK / r.width;
    r.stream = ddp__streams(m * r.c, r.b);
    r.direct = !r.b && !r.stream;
    return r;
}

/* Values of a channel. */
static inline size_t ddp__bn_values(const struct ddp__rows *r)
{
    return r->rows * r->fold + r->tail / r->c;
}

/* Blocks of results: the last one is the shorter row, where there is one. */
static inline size_t ddp__bn_blocks(const struct ddp__rows *r)
{
    return (r->rows + r->chunk - 1) / r->chunk + (r->tail > 0);
}

/* Where block i begins, and how much of it there is. */
static inline size_t ddp__bn_block(const struct ddp__rows *r, size_t i,
                                   size_t *rows, size_t *len)
{
    size_t at = i * r->chunk;

    *rows = 1;
    *len = r->tail;
    if (at >= r->rows) /* the last, shorter row */
        return r->rows;
    *rows = r->rows - at < r->chunk ? r->rows - at : r->chunk;
    *len = r->width;
    return at;
}

/* Parameters of a wide row, and some more values for vectors that begin in
 * it. */
static inline size_t ddp__bn_spaced(const struct ddp__rows *r)
{
    return r->width + DDP__BN_SPARE;
}

/* Repeat the first c values of p up to `len`. */
static inline void ddp__bn_repeat(const struct ddp__rows *r, float *p,
                                  size_t len)
{
    for (size_t i = r->c; i < len; i++)
        p[i] = p[i - r->c];
}

/* Add the repeats of a sum up. */
static inline void ddp__bn_gather(const struct ddp__rows *r, double *p)
{
    for (size_t i = r->c; i < r->width; i++)
        p[i % r->c] += p[i];
}

/* An element of sums that are written, or added to. */
static inline void ddp__bn_collect(const struct ddp__task *t, double *sum,
                                   double v)
{
    *sum = t->accumulate ? *sum + v : v;
}

#endif
