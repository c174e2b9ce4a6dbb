/* bn_line_v16.c - what batch normalisation writes, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Results are stored past the caches while others are computed, and what is
 * read is fetched at a constant distance: the loops of bn_loops.c and
 * bn_bwd_loops.c fetch and store a block at once.  Milliseconds of processor
 * time of all norms of a step with two workers, under load, on an Intel Xeon
 * with AMX, by those loops and by this file and bn_sum_v16.c:
 *
 *     MobileNetV2, 2 x 16 images           456  399
 *     EfficientNet-B0, 2 x 16 images       569  428
 *     EfficientNet-B0, bf16                408  321
 *     ResNet-50, 2 x 8 images              454  423
 */
#include "config.h"

#include "bn_line_v16.h"
#include "bn_v16.h"
#include "cpu/store.h"

#ifdef DDP__X86

enum { AHEAD = 2 << 10 }; /* bytes; 8 Ki: up to 20 % slower */

/* ---- units -------------------------------------------------------------- */

DDP__UNIT_INLINE void load_unit(v16 v[2], const void *p, size_t i, __mmask32 m,
                                bool b)
{
    const char *next = (const char *)ddp__at(p, i, b) - AHEAD;

    _mm_prefetch(next, _MM_HINT_T0);
    if (!b)
        _mm_prefetch(next + 64, _MM_HINT_T0);
    v[0] = ddp__bn_load_v16(p, i, (__mmask16)m, b);
    v[1] = ddp__bn_load_v16(p, i + 16, (__mmask16)(m >> 16), b);
}

DDP__UNIT_INLINE void put_f32(float *p, v16 v, __mmask16 m, bool stream)
{
    if (stream && m == 0xffff)
        _mm512_stream_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, m, v);
}

DDP__UNIT_INLINE void put_unit(const struct ddp__bn_line *l, size_t i,
                               const v16 v[2], __mmask32 m, bool b)
{
    float *f = (float *)l->to + i;
    uint16_t *h = (uint16_t *)l->to + i;

    if (b) {
        __m512i w = (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]);

        if (l->stream && m == 0xffffffff)
            _mm512_stream_si512((void *)h, w);
        else
            _mm512_mask_storeu_epi16(h, m, w);
    } else {
        put_f32(f, v[0], (__mmask16)m, l->stream);
        put_f32(f + 16, v[1], (__mmask16)(m >> 16), l->stream);
    }
}

/* A bit of each value: whether it is positive. */
DDP__UNIT_INLINE void put_mask(uint8_t *to, const v16 v[2], __mmask32 m)
{
    const v16 zero = _mm512_setzero_ps();
    __mmask32 low = _mm512_cmp_ps_mask(v[0], zero, _CMP_GT_OQ);
    __mmask32 high = _mm512_cmp_ps_mask(v[1], zero, _CMP_GT_OQ);
    __mmask32 bits = (low | high << 16) & m;

    if (m == 0xffffffff)
        memcpy(to, &bits, sizeof(bits));
    else
        memcpy(to, &bits, ((size_t)__builtin_popcount(m) + 7) / 8);
}

/* ---- forward ------------------------------------------------------------ */

/* `act`, `residual` and `b` are constants here. */
DDP__UNIT_INLINE void normalise_unit(const struct ddp__bn_params *p,
                                     const struct ddp__bn_line *l, size_t i,
                                     size_t at, __mmask32 m, enum ddp_act act,
                                     bool residual, bool b)
{
    v16 v[2], r[2];

    load_unit(v, l->x, i, m, b);
    if (residual)
        load_unit(r, l->y, i, m, b);
    for (size_t j = 0; j < 2; j++) {
        size_t k = at + 16 * j;

        v[j] = _mm512_fmadd_ps(
            _mm512_sub_ps(v[j], _mm512_loadu_ps(p->mean + k)),
            _mm512_loadu_ps(p->a + k), _mm512_loadu_ps(p->shift + k));
        if (residual)
            v[j] = _mm512_add_ps(v[j], r[j]);
        v[j] = ddp__bn_act_v16(v[j], act);
    }
    put_unit(l, i, v, m, b);
    if (l->mask)
        put_mask(l->mask + i / 8, v, m);
}

DDP__UNIT_INLINE void normalise(const struct ddp__bn_params *p,
                                const struct ddp__bn_line *l, enum ddp_act act,
                                bool residual, bool b)
{
#define F(i, at, m) normalise_unit(p, l, i, at, m, act, residual, b)
    DDP__BN_FROM_END(l, F);
#undef F
}

DDP__UNIT_INLINE void normalise_type(const struct ddp__bn_params *p,
                                     const struct ddp__bn_line *l,
                                     enum ddp_act act)
{
    if (l->b && l->y)
        normalise(p, l, act, true, true);
    else if (l->b)
        normalise(p, l, act, false, true);
    else if (l->y)
        normalise(p, l, act, true, false);
    else
        normalise(p, l, act, false, false);
}

/* The activations that may be fused. */
DDP__UNIT_TARGET static void normalise_act(const struct ddp__bn_params *p,
                                           const struct ddp__bn_line *l,
                                           enum ddp_act act)
{
    switch (act) {
    case DDP_IDENTITY:
        normalise_type(p, l, DDP_IDENTITY);
        break;
    case DDP_RELU:
        normalise_type(p, l, DDP_RELU);
        break;
    case DDP_RELU6:
        normalise_type(p, l, DDP_RELU6);
        break;
    case DDP_SIGMOID:
        normalise_type(p, l, DDP_SIGMOID);
        break;
    case DDP_TANH:
        normalise_type(p, l, DDP_TANH);
        break;
    case DDP_SILU:
        normalise_type(p, l, DDP_SILU);
        break;
    case DDP_HARDSWISH:
        normalise_type(p, l, DDP_HARDSWISH);
        break;
    default: /* not fused */
        break;
    }
}

void ddp__bn_normalise_v16(const struct ddp__bn_params *p,
                           const struct ddp__bn_line *l, enum ddp_act act)
{
    normalise_act(p, l, act);
    ddp__store_end();
}

/* ---- backward ----------------------------------------------------------- */

DDP__UNIT_INLINE void spread_unit(const struct ddp__bn_params *p,
                                  const struct ddp__bn_line *l, size_t i,
                                  size_t at, __mmask32 m,
                                  enum ddp__bn_source from, bool b)
{
    v16 x[2], dy[2], y[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};

    load_unit(x, l->x, i, m, b);
    load_unit(dy, l->dy, i, m, b);
    if (from >= DDP__FROM_RELU)
        load_unit(y, l->y, i, m, b);
    for (size_t j = 0; j < 2; j++) {
        size_t k = at + 16 * j;
        v16 a = _mm512_loadu_ps(p->a + k), dz;
        v16 d = _mm512_sub_ps(x[j], _mm512_loadu_ps(p->mean + k));

        dz =
            ddp__bn_dz_v16(_mm512_fmadd_ps(d, a, _mm512_loadu_ps(p->shift + k)),
                           y[j], dy[j], from);
        dz = _mm512_sub_ps(dz, _mm512_loadu_ps(p->k1 + k));
        x[j] = _mm512_mul_ps(
            a, _mm512_fnmadd_ps(d, _mm512_loadu_ps(p->k2 + k), dz));
    }
    put_unit(l, i, x, m, b);
}

DDP__UNIT_INLINE void spread(const struct ddp__bn_params *p,
                             const struct ddp__bn_line *l,
                             enum ddp__bn_source from, bool b)
{
#define F(i, at, m) spread_unit(p, l, i, at, m, from, b)
    DDP__BN_FROM_END(l, F);
#undef F
}

#define X(from)                                                                \
    DDP__UNIT_TARGET static void spread_##from(const struct ddp__bn_params *p, \
                                               const struct ddp__bn_line *l)   \
    {                                                                          \
        if (l->b)                                                              \
            spread(p, l, from, true);                                          \
        else                                                                   \
            spread(p, l, from, false);                                         \
    }
DDP__BN_SOURCES(X)
#undef X

#define X(from) [from] = spread_##from,
static void (*const spread_of[])(const struct ddp__bn_params *p,
                                 const struct ddp__bn_line *l) = {
    DDP__BN_SOURCES(X)};
#undef X

void ddp__bn_spread_v16(const struct ddp__bn_params *p,
                        const struct ddp__bn_line *l, enum ddp__bn_source from)
{
    spread_of[from](p, l);
    ddp__store_end();
}

#endif
