/* bn_silu_v16.c - batch normalisation with SiLU, of bf16, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The loops of bn_line_v16.c and bn_sum_v16.c take SiLU to the last bit of f32,
 * which needs more instructions than fit into the time that memory takes.  Here
 * sigmoids are off by up to 1e-4 of themselves, a fortieth of what rounding to
 * bf16 loses, and take a table and the processor's estimate of a reciprocal.
 * Instructions limit them: no mean is subtracted from each x, but it is a part
 * of the parameters, and of what is taken from the sums of dz x at the end.
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

#include "bn_silu_v16.h"
#include "bn_stat.h"
#include "cpu/isa.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"

enum {
    AHEAD = 2 << 10, /* bytes */
    SUMS = DDP__BN_SILU_SUMS
};

#ifdef DDP__X86

/* ---- values ------------------------------------------------------------- */

/* Bits of 2^(j / 32) (1 + 2.93e-5), less j << 18. */
static const uint32_t powers[32] __attribute__((aligned(64))) = {
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
DDP__UNIT_INLINE v16 sigmoid(v16 x)
{
    const v16 up = _mm512_set1_ps(12582912.0f), one = _mm512_set1_ps(1);
    v16 v = _mm512_range_ps(x, _mm512_set1_ps(87), 2); /* within +-87 */
    v16 shifted = _mm512_fmadd_ps(v, _mm512_set1_ps(-46.166241f), up);
    v16 r = _mm512_fnmsub_ps(_mm512_sub_ps(shifted, up),
                             _mm512_set1_ps(0.021660849f), v);
    __m512i n = _mm512_castps_si512(shifted);
    __m512i power = _mm512_permutex2var_epi32(_mm512_load_si512(powers), n,
                                              _mm512_load_si512(powers + 16));
    v16 e =
        _mm512_castsi512_ps(_mm512_add_epi32(power, _mm512_slli_epi32(n, 18)));

    return _mm512_rcp14_ps(_mm512_add_ps(one, _mm512_fmadd_ps(e, r, e)));
}

/* dy times the slope of SiLU at z. */
DDP__UNIT_INLINE v16 slope(v16 z, v16 dy)
{
    const v16 one = _mm512_set1_ps(1);
    v16 s = sigmoid(z);

    return _mm512_mul_ps(_mm512_mul_ps(dy, s),
                         _mm512_fnmadd_ps(z, s, _mm512_add_ps(z, one)));
}

/* A unit from i on, of which there are the values of m, and what is `ahead`
 * bytes from it is fetched. */
DDP__UNIT_INLINE void load_unit(v16 v[2], const void *p, size_t i, __mmask32 m,
                                ptrdiff_t ahead)
{
    const uint16_t *at = (const uint16_t *)p + i;
    __m512i w = m == 0xffffffff ? _mm512_loadu_si512(at)
                                : _mm512_maskz_loadu_epi16(m, at);

    _mm_prefetch((const char *)at + ahead, _MM_HINT_T0);
    v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
    v[1] = _mm512_castsi512_ps(
        _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
}

DDP__UNIT_INLINE void put_unit(const struct ddp__bn_line *l, size_t i,
                               const v16 v[2], __mmask32 m)
{
    bool whole = m == 0xffffffff;

    ddp__unit_put_bf16((uint16_t *)l->to + i, ddp__unit_round_bf16(v),
                       (struct ddp__unit){true, whole, whole && l->stream, m});
}

/* The gradients of y of half a unit, 0 where there are none. */
DDP__UNIT_INLINE v16 behind_gate(const struct ddp__bn_silu *p, v16 dy,
                                 size_t at, __mmask32 m)
{
    v16 s = _mm512_loadu_ps(p->s + at), mean = _mm512_loadu_ps(p->m + at);

    if (m == 0xffffffff)
        return _mm512_fmadd_ps(dy, s, mean);
    return _mm512_maskz_fmadd_ps(
        (__mmask16)((1 << __builtin_popcount(m) / 2) - 1), dy, s, mean);
}

/* What is of sample i. */
static struct ddp__bn_line sample_of(const struct ddp__bn_line *l,
                                     const struct ddp__bn_gate *g, size_t i)
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

/* ---- what is written ---------------------------------------------------- */

DDP__UNIT_INLINE void normalise_unit(const struct ddp__bn_silu *p,
                                     const struct ddp__bn_line *l, size_t i,
                                     size_t at, __mmask32 m)
{
    v16 v[2];

    load_unit(v, l->x, i, m, -AHEAD);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++, at += p->odd) {
        v16 z = _mm512_fmadd_ps(v[j], _mm512_loadu_ps(p->a + at),
                                _mm512_loadu_ps(p->shift + at));

        v[j] = _mm512_mul_ps(z, sigmoid(z));
    }
    put_unit(l, i, v, m);
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

    load_unit(x, l->x, i, m, -AHEAD);
    load_unit(dy, l->dy, i, m, -AHEAD);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++, at += p->odd) {
        v16 d_y = gated ? behind_gate(p, dy[j], at, m) : dy[j];
        v16 a = _mm512_loadu_ps(p->a + at);
        v16 z = _mm512_fmadd_ps(x[j], a, _mm512_loadu_ps(p->shift + at));
        v16 rest = _mm512_fmadd_ps(x[j], _mm512_loadu_ps(p->k2 + at),
                                   _mm512_loadu_ps(p->k1 + at));

        x[j] = _mm512_fmsub_ps(a, slope(z, d_y), rest);
    }
    put_unit(l, i, x, m);
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
        struct ddp__bn_line of = sample_of(l, gate, i);

        ddp__bn_silu_set_gate(p, gate, i);
        spread_gated(p, &of);
    }
    ddp__store_end();
}

/* ---- sums --------------------------------------------------------------- */

/* Values that there are not have dy 0. */
DDP__UNIT_INLINE void sum_unit(const struct ddp__bn_silu *p,
                               const struct ddp__bn_line *l, size_t i,
                               size_t at, __mmask32 m, bool gated)
{
    float *s1 = p->kept, *s2 = p->kept + 2 * p->odd;
    v16 x[2], dy[2];

    load_unit(x, l->x, i, m, AHEAD);
    load_unit(dy, l->dy, i, m, AHEAD);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++, at += p->odd) {
        v16 z = _mm512_fmadd_ps(x[j], _mm512_loadu_ps(p->a + at),
                                _mm512_loadu_ps(p->shift + at));
        v16 dz = slope(z, gated ? behind_gate(p, dy[j], at, m) : dy[j]);

        _mm512_storeu_ps(s1 + at, _mm512_add_ps(_mm512_loadu_ps(s1 + at), dz));
        _mm512_storeu_ps(s2 + at,
                         _mm512_fmadd_ps(dz, x[j], _mm512_loadu_ps(s2 + at)));
    }
}

/* Values first .. end - 1, of which the first begins a period. */
DDP__UNIT_INLINE void sum_values(const struct ddp__bn_silu *p,
                                 const struct ddp__bn_line *l, size_t first,
                                 size_t end, bool gated)
{
    size_t at = 0, i = first;

    for (; i + DDP__UNIT <= end; i += DDP__UNIT) {
        sum_unit(p, l, i, at / 2, 0xffffffff, gated);
        at += DDP__UNIT;
        at = at < p->period ? at : at - p->period;
    }
    if (i < end)
        sum_unit(p, l, i, at / 2, ((__mmask32)1 << (end - i)) - 1, gated);
}

DDP__UNIT_TARGET static void sum_plain(const struct ddp__bn_silu *p,
                                       const struct ddp__bn_line *l,
                                       size_t first, size_t end)
{
    sum_values(p, l, first, end, false);
}

DDP__UNIT_TARGET static void sum_gated(const struct ddp__bn_silu *p,
                                       const struct ddp__bn_line *l,
                                       size_t first, size_t end)
{
    sum_values(p, l, first, end, true);
}

/* Where value i of a period, or of those after it, has its sum. */
static size_t place(const struct ddp__bn_silu *p, size_t i)
{
    return i / 2 + i % 2 * p->odd;
}

/* Add the sums of a line. */
static void add_line(const struct ddp__bn_silu *p, const struct ddp__bn_line *l,
                     bool gated)
{
    size_t len = SUMS * 2 * p->odd, block = DDP__BN_BLOCK * p->period;

    for (size_t i = 0; i < l->len; i += block) {
        memset(p->kept, 0, len * sizeof(*p->kept));
        (gated ? sum_gated
               : sum_plain)(p, l, i, l->len - i < block ? l->len : i + block);
        ddp__bn_add(p->sum, p->kept, len);
    }
}

void ddp__bn_silu_sum(const struct ddp__bn_silu *p,
                      const struct ddp__bn_line *l,
                      const struct ddp__bn_gate *gate, double *sum)
{
    memset(p->sum, 0, SUMS * 2 * p->odd * sizeof(*p->sum));
    if (!gate)
        add_line(p, l, false);
    for (size_t i = 0; gate && i < gate->samples; i++) {
        struct ddp__bn_line of = sample_of(l, gate, i);

        ddp__bn_silu_set_gate(p, gate, i);
        add_line(p, &of, true);
    }
    for (size_t k = 0; k < SUMS; k++, sum += p->period)
        for (size_t i = 0; i < p->period; i++) {
            const double *of = p->sum + 2 * k * p->odd;

            sum[i] = of[place(p, i)];
            if (i < DDP__UNIT)
                sum[i] += of[place(p, i + p->period)];
            if (k == 1)
                sum[i] -= (double)p->mean[place(p, i)] * *(sum + i - p->period);
        }
}

#endif
