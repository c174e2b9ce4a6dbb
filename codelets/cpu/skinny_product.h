/* skinny_product.h - what the passes of skinny.c and skinny_wgrad.c share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_PRODUCT_H
#define DDP_SKINNY_PRODUCT_H

#include "cpu.h"
#include "skinny.h"
#include "v16.h"

enum {
    DDP__SKINNY_PARTS = 16,    /* of a sum, added in turn */
    DDP__SKINNY_ROWS = 4,      /* of weights that are read at a time */
    DDP__SKINNY_CACHED = 8192, /* elements of all rows of x or dx that are in
                                  the first-level cache */
    DDP__SKINNY_BLOCK = 2 * DDP__SKINNY_PARTS /* of a row whose gradient is in
                                                 registers */
};

typedef float ddp__parts
    __attribute__((vector_size(DDP__SKINNY_PARTS * sizeof(float))));

#ifdef DDP__V16
#define DDP__SKINNY DDP__V16
#define DDP__SKINNY_INLINE DDP__V16_INLINE
#else
#define DDP__SKINNY
#define DDP__SKINNY_INLINE DDP__INLINE
#endif

/* A product of n rows; a row of weights has c values for each tap. */
struct ddp__skinny_product {
    size_t n, out, c, in; /* in: of all taps */
    const struct ddp__skinny_x *x;
};

/* Columns of all rows under a tap that are in the first-level cache. */
static inline size_t ddp__skinny_piece(const struct ddp__skinny_tap *t)
{
    return t->n ? DDP__SKINNY_CACHED / t->n / DDP__SKINNY_BLOCK *
                      DDP__SKINNY_BLOCK
                : DDP__SKINNY_CACHED;
}

/* to += a from */
DDP__SKINNY_INLINE void ddp__skinny_add(const float *restrict from, float a,
                                        size_t len, float *restrict to)
{
    for (size_t i = 0; i < len; i++)
        to[i] += a * from[i];
}

#endif
