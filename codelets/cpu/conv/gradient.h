/* gradient.h - kernels for gradients of convolutions' weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     dw[o][tap][c] (+)= sum over outputs p of dy[p][o] x[p under tap][c]
 *
 * is a product of two matrices over outputs, for each tap.
 */
#ifndef DDP_CPU_GRADIENT_H
#define DDP_CPU_GRADIENT_H

#include "cpu/isa.h"
#include "shape.h"

struct ddp__gradient {
    const char *name;
    bool yields; /* where products of patches pay (patch.h) */
    /* Whether this is worthwhile, here. */
    bool (*fits)(const struct ddp__conv_shape *s);
    /* dw = the gradient, or that is added.  bias.h has that of a bias. */
    int (*run)(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw);
    /* A task of NORM_CONV_BWD_W; NULL: it cannot be. */
    int (*run_of_norm)(const struct ddp__task *t,
                       const struct ddp__conv_shape *s);
};

/* One per file, in the order in which they are asked; they need AVX-512. */
#define DDP__GRADIENTS(X)                                                      \
    X(depthwise_wgrad)                                                         \
    X(depthwise_wgrad_rows) X(wgrad_thin) X(wgrad_i16) X(wgrad)
#define DDP__AMX_GRADIENTS(X) X(amx_wgrad) X(amx_taps) X(amx)

#define X(name) extern const struct ddp__gradient ddp__##name;
DDP__GRADIENTS(X)
DDP__AMX_GRADIENTS(X)
#undef X

/* The kernel for a layer; NULL: there is none. */
const struct ddp__gradient *ddp__gradient_of(const struct ddp__conv_shape *s);

#endif
