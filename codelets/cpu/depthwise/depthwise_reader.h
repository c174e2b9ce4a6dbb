/* depthwise_reader.h - a batch norm that reads a data gradient as it is made
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * With the formulas of bn_bwd.c.
 */
#ifndef DDP_DEPTHWISE_READER_H
#define DDP_DEPTHWISE_READER_H

#include <string.h>

#include "cpu/norm/bn_v16.h"
#include "depthwise_v16.h"

#ifdef DDP__X86

/* Results first .. end - 1 of some pixels in vector v of words, and x of the
 * norm for the first of these pixels. */
struct ddp__depthwise_read {
    const struct ddp__depthwise_work *u;
    int v;
    const float *x;
    int first, end;
    __mmask16 mask; /* of words that there are, where it counts */
};

/* Parameters of 16 channels. */
struct ddp__depthwise_channels {
    v16 mean, a, shift, k1, k2;
};

DDP__UNIT_INLINE struct ddp__depthwise_channels
ddp__depthwise_channels_of(const struct ddp__depthwise_read *r)
{
    const struct ddp__bn_params *p = &r->u->reader->p;
    ptrdiff_t at = (ptrdiff_t)r->v * LANES;

    return (struct ddp__depthwise_channels){LOAD(p->mean + at), LOAD(p->a + at),
                                            LOAD(p->shift + at),
                                            LOAD(p->k1 + at), LOAD(p->k2 + at)};
}

DDP__UNIT_INLINE v16 ddp__depthwise_slope(const struct ddp__depthwise_norm *n,
                                          v16 z)
{
    __mmask16 above = _mm512_cmp_ps_mask(z, SET(n->low), _CMP_GT_OQ);
    __mmask16 inside =
        _mm512_mask_cmp_ps_mask(above, z, SET(n->high), _CMP_LT_OQ);
    v16 slope = FMA(z, SET(n->m), SET(n->b));

    return _mm512_mask_mov_ps(_mm512_maskz_mov_ps(above, SET(n->top)), inside,
                              slope);
}

/* dz of dy, and d = x - mean, of a result. */
DDP__UNIT_INLINE v16 ddp__depthwise_dz(const struct ddp__depthwise_read *r,
                                       const struct ddp__depthwise_channels *n,
                                       v16 x, v16 dy, enum ddp_act act, v16 *d)
{
    v16 z;

    *d = SUB(x, n->mean);
    z = FMA(*d, n->a, n->shift);
    if (act == DDP_SILU)
        return ddp__bn_grad_v16(z, dy, act);
    return MUL(dy, ddp__depthwise_slope(r->u->reader, z));
}

/* dz of result dy[i], and d, while what is read of a later one is fetched. */
DDP__UNIT_INLINE v16 ddp__depthwise_dz_at(
    const struct ddp__depthwise_read *r,
    const struct ddp__depthwise_channels *n, const struct ddp__depthwise_kind k,
    bool careful, int i, v16 dy, v16 *d)
{
    const float *x = r->x + i * r->u->c;

    _mm_prefetch((const char *)(x + k.pixels * r->u->c), _MM_HINT_T0);
    return ddp__depthwise_dz(
        r, n, careful ? _mm512_maskz_loadu_ps(r->mask, x) : LOAD(x), dy, k.act,
        d);
}

/* What the sums get of results dy. */
DDP__UNIT_INLINE void
ddp__depthwise_read_sums(const struct ddp__depthwise_read *r,
                         const struct ddp__depthwise_kind k, bool careful,
                         const v16 *dy)
{
    const struct ddp__depthwise_channels n = ddp__depthwise_channels_of(r);
    float *s1 = r->u->reader->part + r->v * LANES;
    float *s2 = s1 + r->u->vectors * LANES;
    v16 sum1 = LOAD(s1), sum2 = LOAD(s2), d, dz;

#pragma GCC unroll 8
    for (int i = 0; i < k.pixels; i++)
        if (!careful || (i >= r->first && i < r->end)) {
            dz = ddp__depthwise_dz_at(r, &n, k, careful, i, dy[i], &d);
            sum1 = ADD(sum1, dz);
            sum2 = FMA(dz, d, sum2);
        }
    STORE(s1, sum1);
    STORE(s2, sum2);
}

/* dx of results dy, in their place. */
DDP__UNIT_INLINE void
ddp__depthwise_read_dx(const struct ddp__depthwise_read *r,
                       const struct ddp__depthwise_kind k, bool careful,
                       v16 *dy)
{
    const struct ddp__depthwise_channels n = ddp__depthwise_channels_of(r);
    v16 d, dz;

#pragma GCC unroll 8
    for (int i = 0; i < k.pixels; i++)
        if (!careful || (i >= r->first && i < r->end)) {
            dz = ddp__depthwise_dz_at(r, &n, k, careful, i, dy[i], &d);
            dy[i] = MUL(n.a, FNMA(d, n.k2, SUB(dz, n.k1)));
        }
}

/* Sums of a row go to those of all. */
static inline void ddp__depthwise_end_row(const struct ddp__depthwise_work *u)
{
    const struct ddp__depthwise_norm *n = u->reader;
    size_t whole = (size_t)u->vectors * LANES;
    double *sum = n->sum, *sum2 = sum + n->apart;

    for (size_t i = 0; i < (size_t)u->c; i++) {
        sum[i] += (double)n->part[i];
        sum2[i] += (double)n->part[whole + i];
    }
    memset(n->part, 0, 2 * whole * sizeof(*n->part));
}

#endif
#endif
