/* skinny.h - products with few rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A row of y belongs to an output pixel, or a sample of a dense layer.  Each
 * tap of a convolution has the rows whose pixel it finds inside the image.
 */
#ifndef DDP_SKINNY_H
#define DDP_SKINNY_H

#include "cpu/conv/shape.h"

enum { DDP__SKINNY_MOST = 64 }; /* rows, which a convolution may have */

/* Rows of y, and where in x the values begin that a tap sees for them. */
struct ddp__skinny_tap {
    size_t n, row[DDP__SKINNY_MOST], at[DDP__SKINNY_MOST];
};

struct ddp__skinny_x {
    size_t len, taps; /* values of x; at least one */
    const struct ddp__skinny_tap *tap;
};

/* The loops of this processor (skinny_product.h), which has some. */
struct ddp__skinny_loops;
const struct ddp__skinny_loops *ddp__skinny_loops(void);

/* Whether a pass of s, a dense layer, is computed so here. */
bool ddp__skinny_fits(const struct ddp__conv_shape *s,
                      enum ddp__conv_pass pass);

/* A pass of a layer with s->n rows of s->c weights, of all taps.  In bf16 it
 * takes the thread's scratch memory. */
int ddp__skinny_run(const struct ddp__task *t, const struct ddp__conv_shape *s,
                    enum ddp__conv_pass pass, const struct ddp__skinny_x *x);

/* That of a dense layer. */
int ddp__skinny_dense(const struct ddp__task *t,
                      const struct ddp__conv_shape *s,
                      enum ddp__conv_pass pass);

#endif
