/* skinny_product.h - what the passes of skinny.c and skinny_wgrad.c share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_PRODUCT_H
#define DDP_SKINNY_PRODUCT_H

#include "skinny.h"

enum {
    DDP__SKINNY_ROWS = 4,      /* of weights that are read at a time */
    DDP__SKINNY_CACHED = 8192, /* elements of all rows of x or dx that are in
                                  the first-level cache */
    DDP__SKINNY_STEP = 32      /* elements of a row, of which pieces are made */
};

/* A product of n rows; a row of weights has c values for each tap. */
struct ddp__skinny_product {
    size_t n, out, c, in; /* in: of all taps */
    const struct ddp__skinny_x *x;
};

/* Some columns of weight gradients under a tap. */
struct ddp__skinny_columns {
    const struct ddp__skinny_tap *tap;
    size_t len;
    bool add, stream; /* to the gradients; past the caches */
};

/* Loops for vectors of some length (skinny_loops.h). */
struct ddp__skinny_loops {
    /* y = x w for outputs first .. end - 1 of all rows */
    void (*multiply)(const struct ddp__skinny_product *p, const float *w,
                     const float *x, size_t first, size_t end, float *y);
    /* dx += dy w for len columns of dx under a tap, which begin where w and dx
     * do */
    void (*add_columns)(const struct ddp__skinny_product *p,
                        const struct ddp__skinny_tap *t, const float *w,
                        const float *dy, size_t len, float *dx);
    /* dw = x dy, or dw += x dy, for some columns of all outputs */
    void (*put_columns)(const struct ddp__skinny_product *p,
                        const struct ddp__skinny_columns *k, const float *x,
                        const float *dy, float *dw);
};

/* Columns of all rows under a tap that are in the first-level cache. */
static inline size_t ddp__skinny_piece(const struct ddp__skinny_tap *t)
{
    return t->n
               ? DDP__SKINNY_CACHED / t->n / DDP__SKINNY_STEP * DDP__SKINNY_STEP
               : DDP__SKINNY_CACHED;
}

#endif
