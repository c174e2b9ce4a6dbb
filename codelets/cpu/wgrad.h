/* wgrad.h - weight gradients as products over pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     dw[o][tap][c] (+)= sum over outputs p of dy[p][o] x[p under tap][c]
 *
 * is a product of two matrices for each tap.  Needs AVX-512; with bf16
 * AVX512_BF16.
 */
#ifndef DDP_CPU_WGRAD_H
#define DDP_CPU_WGRAD_H

#include "onednn.h"

/* Whether this is worthwhile, here: for dense layers too. */
bool ddp__wgrad_fits(const struct ddp__dnn_shape *s);

int ddp__wgrad_run(const struct ddp__dnn_shape *s, const void *x,
                   const void *dy, bool accumulate, float *dw);

#endif
