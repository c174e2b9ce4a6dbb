/* bn_silu_set.h - parameters of batch normalisation with SiLU, of bf16
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_SILU_SET_H
#define DDP_BN_SILU_SET_H

#include "bn.h"
#include "bn_gate.h"
#include "cpu/isa.h"

enum { DDP__BN_SILU_SUMS = 2 };

/* Parameters over a period, those of even values apart from those of odd ones,
 * as units of bf16 are in registers: k1 and k2 are of dx = a dz - k1 - (x -
 * mean) k2, s and m of a sample's gradient of y, dy s + m.  Both kinds have
 * spare ones for units that end after the period. */
struct ddp__bn_silu {
    float *mean, *a, *shift, *k1, *k2, *s, *m, *kept; /* kept: of a block */
    double *sum;
    size_t period, odd; /* odd: where those of odd values begin */
};

/* Whether these loops compute a norm whose parameters repeat after `period`
 * values. */
bool ddp__bn_silu_fits(enum ddp_act act, bool residual, bool b, size_t period);

/* Bytes of the parameters, and parameters in so much memory. */
size_t ddp__bn_silu_size(size_t period);
struct ddp__bn_silu ddp__bn_silu_in(void *room, size_t period);

/* to = one of them, of which `from` has DDP__BN_SPARE more than a period. */
void ddp__bn_silu_set(const struct ddp__bn_silu *p, float *to,
                      const float *from);

/* Have shift contain -mean a, after all three are set: x a + shift is what SiLU
 * gets.  Then, after k1 and k2 are set, have a dz - k1 - x k2 be dx.  An x far
 * from 0 is rounded to bf16 far more coarsely than these products to f32. */
void ddp__bn_silu_center(const struct ddp__bn_silu *p);
void ddp__bn_silu_scale(const struct ddp__bn_silu *p);

/* Whether they also multiply dy by a gate of c channels. */
static inline bool ddp__bn_silu_gates(size_t c)
{
    return c % 2 == 0;
}

/* s and m, of one sample. */
DDP__X86_ONLY void ddp__bn_silu_set_gate(const struct ddp__bn_silu *p,
                                         const struct ddp__bn_gate *g,
                                         size_t sample);

#endif
