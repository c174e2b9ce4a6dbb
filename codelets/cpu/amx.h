/* amx.h - weight gradients of bf16 convolutions on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     dw[o][tap][c] (+)= sum over outputs p of dy[p][o] x[p + tap][c]
 *
 * is a matrix product over output pixels for each tap.  It goes straight into
 * the gradient, written or added to.
 */
#ifndef DDP_AMX_H
#define DDP_AMX_H

#include "isa.h"
#include "onednn.h"

/* Whether this is worthwhile, here. */
bool ddp__amx_fits(const struct ddp__dnn_shape *s);

int ddp__amx_bwd_w(const struct ddp__dnn_shape *s, const void *x,
                   const void *dy, bool accumulate, float *dw);

#endif
