/* shape.h - what a convolution or dense layer computes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_SHAPE_H
#define DDP_CPU_SHAPE_H

#include "ops.h"

enum ddp__conv_pass { DDP__FWD, DDP__BWD_X, DDP__BWD_W };

/* What is computed: y (n, oh, ow, o) of x (n, h, w, c). */
struct ddp__conv_shape {
    bool dense; /* h, w, oh, ow are 1, of conv only bias and act count */
    enum ddp_dtype type;
    int n, h, w, c, oh, ow, o;
    struct ddp__conv conv;
    bool sum; /* forward: y = act(w * x + b + y) */
};

#endif
