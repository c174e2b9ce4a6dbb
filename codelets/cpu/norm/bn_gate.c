/* bn_gate.c - gradients behind a product of pixels with a gate
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For norms whose own loops (bn_silu_unit.h) do not multiply.
 */
#include "config.h"

#include "bn_gate.h"
#include "cpu/cpu.h"

DDP__INLINE void factors(const void *restrict s, const void *restrict dm,
                         float share, size_t c, float *restrict to, bool b)
{
    for (size_t i = 0; i < c; i++) {
        to[i] = ddp__load(s, i, b);
        to[c + i] = ddp__load(dm, i, b) * share;
    }
}

/* f: factors of a sample, then summands. */
DDP__INLINE void apply(const void *restrict dy, const float *restrict f,
                       size_t rows, size_t c, float *restrict to, bool b)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < c; i++)
            to[r * c + i] = ddp__load(dy, r * c + i, b) * f[i] + f[c + i];
}

DDP__CLONES static void apply_f32(const void *dy, const float *f, size_t rows,
                                  size_t c, float *to)
{
    apply(dy, f, rows, c, to, false);
}

DDP__CLONES static void apply_bf16(const void *dy, const float *f, size_t rows,
                                   size_t c, float *to)
{
    apply(dy, f, rows, c, to, true);
}

void ddp__bn_gate_apply(const struct ddp__bn_gate *g, const void *dy, size_t at,
                        size_t len, float *f, float *to)
{
    size_t sample = g->pixels * g->c, n, left;

    for (size_t end = at + len; at < end; at += n, to += n) {
        size_t channel = at / sample * g->c;

        left = (at / sample + 1) * sample - at;
        n = end - at < left ? end - at : left;
        factors(ddp__at(g->s, channel, g->b), ddp__at(g->dm, channel, g->b),
                1 / (float)g->pixels, g->c, f, g->b);
        (g->b ? apply_bf16 : apply_f32)(ddp__at(dy, at, g->b), f, n / g->c,
                                        g->c, to);
    }
}
