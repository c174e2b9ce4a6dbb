/* bn_silu_set.c - parameters of batch normalisation with SiLU, of bf16
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bn_silu_set.h"
#include "cpu/vector/unit_v16.h"

enum { LANES = DDP__UNIT / 2, PARAMETERS = 7 };

bool ddp__bn_silu_fits(enum ddp_act act, bool residual, bool b, size_t period)
{
    return act == DDP_SILU && !residual && b && period % 2 == 0 &&
           period >= DDP__UNIT && ddp__unit_v16(true);
}

/* Where odd ones begin: lines of even ones, with the spare ones. */
static size_t odd_of(size_t period)
{
    return ((period + DDP__UNIT) / 2 + LANES - 1) / LANES * LANES;
}

size_t ddp__bn_silu_size(size_t period)
{
    return 2 * odd_of(period) *
           ((PARAMETERS + DDP__BN_SILU_SUMS) * sizeof(float) +
            DDP__BN_SILU_SUMS * sizeof(double));
}

struct ddp__bn_silu ddp__bn_silu_in(void *room, size_t period)
{
    size_t odd = odd_of(period);
    double *sum = room;
    float *f = (float *)(sum + DDP__BN_SILU_SUMS * 2 * odd);

    return (struct ddp__bn_silu){
        f,           f + 2 * odd,  f + 4 * odd,  f + 6 * odd,
        f + 8 * odd, f + 10 * odd, f + 12 * odd, f + 14 * odd,
        sum,         period,       odd};
}

void ddp__bn_silu_set(const struct ddp__bn_silu *p, float *to,
                      const float *from)
{
    for (size_t i = 0; i < p->period + DDP__UNIT; i++)
        to[i / 2 + i % 2 * p->odd] = from[i];
}

/* Numbers of even values, and where those of odd ones end. */
static size_t used_of(const struct ddp__bn_silu *p)
{
    return p->odd + (p->period + DDP__UNIT) / 2;
}

void ddp__bn_silu_center(const struct ddp__bn_silu *p)
{
    for (size_t i = 0; i < used_of(p); i++)
        p->shift[i] -= p->mean[i] * p->a[i];
}

void ddp__bn_silu_scale(const struct ddp__bn_silu *p)
{
    for (size_t i = 0; i < used_of(p); i++) {
        p->k2[i] *= p->a[i];
        p->k1[i] = p->k1[i] * p->a[i] - p->mean[i] * p->k2[i];
    }
}

#ifdef DDP__X86

/* Numbers of one sample, times `by`, over a period and the spare ones. */
DDP__UNIT_TARGET static void set_gate_values(const struct ddp__bn_silu *p,
                                             const uint16_t *from, size_t c,
                                             float by, float *to)
{
    size_t end = (p->period + DDP__UNIT) / 2, half = c / 2;
    const v16 factor = _mm512_set1_ps(by);

    for (size_t i = 0; i < c; i += DDP__UNIT) {
        size_t left = c - i;
        struct ddp__unit k = {.b = true, .whole = left >= DDP__UNIT};
        v16 v[2];

        k.mask = k.whole ? 0xffffffff : ((__mmask32)1 << left) - 1;
        ddp__unit_load(v, from, i, k);
        _mm512_storeu_ps(to + i / 2, _mm512_mul_ps(v[0], factor));
        _mm512_storeu_ps(to + p->odd + i / 2, _mm512_mul_ps(v[1], factor));
    }
    for (size_t i = half; i < end; i++) {
        to[i] = to[i - half];
        to[p->odd + i] = to[p->odd + i - half];
    }
}

void ddp__bn_silu_set_gate(const struct ddp__bn_silu *p,
                           const struct ddp__bn_gate *g, size_t sample)
{
    size_t at = sample * g->c;

    set_gate_values(p, (const uint16_t *)g->s + at, g->c, 1, p->s);
    set_gate_values(p, (const uint16_t *)g->dm + at, g->c, 1 / (float)g->pixels,
                    p->m);
}

#endif
