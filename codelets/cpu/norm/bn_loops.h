/* bn_loops.h - loops of the forward pass of batch normalisation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_LOOPS_H
#define DDP_BN_LOOPS_H

#include "bn_bwd_loops.h"

/* Rows of x, of y and, unless NULL, of the residual; len of their width values
 * are used. */
struct ddp__bn_piece {
    const void *x, *res;
    float *y;
    size_t rows, width, len;
};

/* y = act((x - mean) a + shift + res) */
void ddp__bn_normalise(const struct ddp__bn_params *p,
                       const struct ddp__bn_piece *k, enum ddp_act act, bool b);

#endif
