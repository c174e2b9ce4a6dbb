/* bn_silu_sum_v16.c - sums of batch norms with SiLU, of bf16, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See bn_silu_v16.c.
 */
#include "config.h"

#include "bn_silu_sum_v16.h"
#include "bn_silu_unit.h"
#include "bn_stat.h"

#ifdef DDP__X86

enum { SUMS = DDP__BN_SILU_SUMS };

/* Values that there are not have dy 0. */
DDP__UNIT_INLINE void sum_unit(const struct ddp__bn_silu *p,
                               const struct ddp__bn_line *l, size_t i,
                               size_t at, __mmask32 m, bool gated)
{
    float *s1 = p->kept, *s2 = p->kept + 2 * p->odd;
    v16 x[2], dy[2];

    ddp__bn_silu_load(x, l->x, i, m, DDP__BN_SILU_AHEAD);
    ddp__bn_silu_load(dy, l->dy, i, m, DDP__BN_SILU_AHEAD);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++, at += p->odd) {
        v16 z = _mm512_fmadd_ps(x[j], _mm512_loadu_ps(p->a + at),
                                _mm512_loadu_ps(p->shift + at));
        v16 dz = ddp__bn_silu_slope(
            z, gated ? ddp__bn_silu_behind_gate(p, dy[j], at, m) : dy[j]);

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

/* The sums of a period, where those of values after it are added.  Those of dz
 * x become those of dz (x - mean). */
static void put_sums(const struct ddp__bn_silu *p, double *sum)
{
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

void ddp__bn_silu_sum(const struct ddp__bn_silu *p,
                      const struct ddp__bn_line *l,
                      const struct ddp__bn_gate *gate, double *sum)
{
    memset(p->sum, 0, SUMS * 2 * p->odd * sizeof(*p->sum));
    if (!gate)
        add_line(p, l, false);
    for (size_t i = 0; gate && i < gate->samples; i++) {
        struct ddp__bn_line of = ddp__bn_silu_sample(l, gate, i);

        ddp__bn_silu_set_gate(p, gate, i);
        add_line(p, &of, true);
    }
    put_sums(p, sum);
}

#endif
