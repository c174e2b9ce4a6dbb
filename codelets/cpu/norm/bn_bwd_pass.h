/* bn_bwd_pass.h - the passes of batch normalisation backward over its values
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_BWD_PASS_H
#define DDP_BN_BWD_PASS_H

#include "bn.h"
#include "bn_bwd_loops.h"
#include "bn_gate.h"
#include "bn_silu_set.h"

/* What both passes work with; buf holds a chunk. */
struct ddp__bn_pass {
    const struct ddp__task *t;
    struct ddp__rows r;
    struct ddp__bn_params p;
    struct ddp__bn_part all;
    float *par, *buf; /* par: what p points to */
    double *sum;
    enum ddp__bn_source from;
    bool silu; /* loops for SiLU compute it, with these parameters in buf */
    struct ddp__bn_silu of_silu;
    const struct ddp__bn_gate *gate; /* that it multiplies by, or NULL */
    float *wide; /* bf16 with a gate, but not by those loops: room for the x and
                    gradients of y of a chunk as floats, and for the gate */
};

/* sum = the sums of dz, and after a width those of dz (x - mean), of each
 * channel.  Where there is a residual, dr = dz. */
void ddp__bn_first_pass(const struct ddp__bn_pass *s, double *sum);

/* dx, once the factors are there (bn_bwd_channels.h). */
void ddp__bn_second_pass(struct ddp__bn_pass *s);

#endif
