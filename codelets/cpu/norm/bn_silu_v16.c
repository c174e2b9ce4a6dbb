/* bn_silu_v16.c - what batch norms with SiLU write, of bf16, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The loops of bn_line_v16.c and bn_sum_v16.c take SiLU to the last bit of f32,
 * which needs more instructions than fit into the time that memory takes.  Here
 * and in bn_silu_sum_v16.c they take that of bn_silu_unit.h.  Instructions
 * limit them: no mean is subtracted from each x, but it is a part of the
 * parameters, and of what is taken from the sums of dz x at the end.
 *
 * Intel Xeon with AMX, both cores busy with more than this, 16 images,
 * milliseconds of a core by those loops and by these (tests/kernelbench silu):
 *
 *     112x112x32  forward 3.8 2.3, backward 6.4 4.2
 *     28x28x240   forward 1.6 1.0, backward 2.8 1.9
 *
 * These are figures of loops that subtracted the mean from each x, which took 2
 * to 9 % longer under load.  Both cores of a Zen 4 busy with steps of
 * EfficientNet-B0: 112x112x32 2.8 2.0, 5.8 3.5; 28x28x240 1.5 1.1, 2.8 1.7.
 */
#include "config.h"

#include "bn_silu_unit.h"
#include "bn_silu_v16.h"
#include "cpu/store.h"

#ifdef DDP__X86

DDP__UNIT_INLINE void normalise_unit(const struct ddp__bn_silu *p,
                                     const struct ddp__bn_line *l, size_t i,
                                     size_t at, __mmask32 m)
{
    v16 v[2];

    ddp__bn_silu_load(v, l->x, i, m, -DDP__BN_SILU_AHEAD);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++, at += p->odd) {
        v16 z = _mm512_fmadd_ps(v[j], _mm512_loadu_ps(p->a + at),
                                _mm512_loadu_ps(p->shift + at));

        v[j] = _mm512_mul_ps(z, ddp__bn_silu_sigmoid(z));
    }
    ddp__bn_silu_put(l, i, v, m);
}

DDP__UNIT_TARGET static void normalise(const struct ddp__bn_silu *p,
                                       const struct ddp__bn_line *l)
{
#define F(i, at, m) normalise_unit(p, l, i, (at) / 2, m)
    DDP__BN_FROM_END(l, F);
#undef F
}

void ddp__bn_silu_normalise(const struct ddp__bn_silu *p,
                            const struct ddp__bn_line *l)
{
    normalise(p, l);
    ddp__store_end();
}

DDP__UNIT_INLINE void spread_unit(const struct ddp__bn_silu *p,
                                  const struct ddp__bn_line *l, size_t i,
                                  size_t at, __mmask32 m, bool gated)
{
    v16 x[2], dy[2];

    ddp__bn_silu_load(x, l->x, i, m, -DDP__BN_SILU_AHEAD);
    ddp__bn_silu_load(dy, l->dy, i, m, -DDP__BN_SILU_AHEAD);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++, at += p->odd) {
        v16 d_y = gated ? ddp__bn_silu_behind_gate(p, dy[j], at, m) : dy[j];
        v16 a = _mm512_loadu_ps(p->a + at);
        v16 z = _mm512_fmadd_ps(x[j], a, _mm512_loadu_ps(p->shift + at));
        v16 rest = _mm512_fmadd_ps(x[j], _mm512_loadu_ps(p->k2 + at),
                                   _mm512_loadu_ps(p->k1 + at));

        x[j] = _mm512_fmsub_ps(a, ddp__bn_silu_slope(z, d_y), rest);
    }
    ddp__bn_silu_put(l, i, x, m);
}

DDP__UNIT_TARGET static void spread(const struct ddp__bn_silu *p,
                                    const struct ddp__bn_line *l)
{
#define F(i, at, m) spread_unit(p, l, i, (at) / 2, m, false)
    DDP__BN_FROM_END(l, F);
#undef F
}

DDP__UNIT_TARGET static void spread_gated(const struct ddp__bn_silu *p,
                                          const struct ddp__bn_line *l)
{
#define F(i, at, m) spread_unit(p, l, i, (at) / 2, m, true)
    DDP__BN_FROM_END(l, F);
#undef F
}

void ddp__bn_silu_spread(const struct ddp__bn_silu *p,
                         const struct ddp__bn_line *l,
                         const struct ddp__bn_gate *gate)
{
    if (!gate)
        spread(p, l);
    for (size_t i = gate ? gate->samples : 0; i-- > 0;) {
        struct ddp__bn_line of = ddp__bn_silu_sample(l, gate, i);

        ddp__bn_silu_set_gate(p, gate, i);
        spread_gated(p, &of);
    }
    ddp__store_end();
}

#endif
