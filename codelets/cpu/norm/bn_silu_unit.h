/* bn_silu_unit.h - SiLU and its slope of 32 values of bf16, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sigmoids are off by up to 1e-4 of themselves, a fortieth of what rounding to
 * bf16 loses, and take a table and the processor's estimate of a reciprocal.
 */
#ifndef DDP_BN_SILU_UNIT_H
#define DDP_BN_SILU_UNIT_H

#include "bn_line_v16.h"
#include "bn_silu_set.h"
#include "cpu/vector/unit_v16.h"

#ifdef DDP__X86

enum { DDP__BN_SILU_AHEAD = 2 << 10 /* bytes */ };

/* Bits of 2^(j / 32) (1 + 2.93e-5), less j << 18. */
static const uint32_t ddp__bn_silu_powers[32] __attribute__((aligned(64))) = {
    0x3f8000f6, 0x3f7ece82, 0x3f7dabc4, 0x3f7c9915, 0x3f7b96ce, 0x3f7aa54b,
    0x3f79c4eb, 0x3f78f60e, 0x3f783915, 0x3f778e64, 0x3f76f664, 0x3f76717b,
    0x3f760015, 0x3f75a2a0, 0x3f75598c, 0x3f75254a, 0x3f75064f, 0x3f74fd12,
    0x3f750a0f, 0x3f752dc0, 0x3f7568a5, 0x3f75bb41, 0x3f762618, 0x3f76a9b2,
    0x3f77469a, 0x3f77fd5e, 0x3f78ce8f, 0x3f79bac0, 0x3f7ac28a, 0x3f7be686,
    0x3f7d2754, 0x3f7e8594,
};

/* 1 / (1 + exp(-x)); of a NaN it is a number.  exp(-x) = 2^(n / 32) exp(r), r
 * at most log(2) / 64, exp(r) is 1 + r with a factor that halves the error, and
 * n is in the low bits of `shifted`, so that five of them are a place in the
 * table and the rest is an exponent. */
DDP__UNIT_INLINE v16 ddp__bn_silu_sigmoid(v16 x)
{
    const v16 up = _mm512_set1_ps(12582912.0f), one = _mm512_set1_ps(1);
    v16 v = _mm512_range_ps(x, _mm512_set1_ps(87), 2); /* within +-87 */
    v16 shifted = _mm512_fmadd_ps(v, _mm512_set1_ps(-46.166241f), up);
    v16 r = _mm512_fnmsub_ps(_mm512_sub_ps(shifted, up),
                             _mm512_set1_ps(0.021660849f), v);
    __m512i n = _mm512_castps_si512(shifted);
    __m512i power =
        _mm512_permutex2var_epi32(_mm512_load_si512(ddp__bn_silu_powers), n,
                                  _mm512_load_si512(ddp__bn_silu_powers + 16));
    v16 e =
        _mm512_castsi512_ps(_mm512_add_epi32(power, _mm512_slli_epi32(n, 18)));

    return _mm512_rcp14_ps(_mm512_add_ps(one, _mm512_fmadd_ps(e, r, e)));
}

/* dy times the slope of SiLU at z. */
DDP__UNIT_INLINE v16 ddp__bn_silu_slope(v16 z, v16 dy)
{
    const v16 one = _mm512_set1_ps(1);
    v16 s = ddp__bn_silu_sigmoid(z);

    return _mm512_mul_ps(_mm512_mul_ps(dy, s),
                         _mm512_fnmadd_ps(z, s, _mm512_add_ps(z, one)));
}

/* A unit from i on, of which there are the values of m, and what is `ahead`
 * bytes from it is fetched. */
DDP__UNIT_INLINE void ddp__bn_silu_load(v16 v[2], const void *p, size_t i,
                                        __mmask32 m, ptrdiff_t ahead)
{
    const uint16_t *at = (const uint16_t *)p + i;
    __m512i w = m == 0xffffffff ? _mm512_loadu_si512(at)
                                : _mm512_maskz_loadu_epi16(m, at);

    _mm_prefetch((const char *)at + ahead, _MM_HINT_T0);
    v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
    v[1] = _mm512_castsi512_ps(
        _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
}

DDP__UNIT_INLINE void ddp__bn_silu_put(const struct ddp__bn_line *l, size_t i,
                                       const v16 v[2], __mmask32 m)
{
    bool whole = m == 0xffffffff;

    ddp__unit_put_bf16((uint16_t *)l->to + i, ddp__unit_round_bf16(v),
                       (struct ddp__unit){true, whole, whole && l->stream, m});
}

/* The gradients of y of half a unit, 0 where there are none. */
DDP__UNIT_INLINE v16 ddp__bn_silu_behind_gate(const struct ddp__bn_silu *p,
                                              v16 dy, size_t at, __mmask32 m)
{
    v16 s = _mm512_loadu_ps(p->s + at), mean = _mm512_loadu_ps(p->m + at);

    if (m == 0xffffffff)
        return _mm512_fmadd_ps(dy, s, mean);
    return _mm512_maskz_fmadd_ps(
        (__mmask16)((1 << __builtin_popcount(m) / 2) - 1), dy, s, mean);
}

/* The part of a line that sample i has. */
static inline struct ddp__bn_line
ddp__bn_silu_sample(const struct ddp__bn_line *l, const struct ddp__bn_gate *g,
                    size_t i)
{
    size_t len = g->pixels * g->c, at = i * len;
    struct ddp__bn_line of = *l;

    of.x = ddp__at(l->x, at, true);
    of.dy = ddp__at(l->dy, at, true);
    of.to = l->to ? ddp__to(l->to, at, true) : NULL;
    of.len = len;
    of.stream = l->stream && len % DDP__UNIT == 0;
    return of;
}

#endif

#endif
