/* act_v16.h - activations of 16 floats, in registers, and where they go
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ACT_V16_H
#define DDP_ACT_V16_H

#include "cpu/store.h"
#include "cpu/vector/v16.h"
#include "ops.h"

#ifdef DDP__X86
#include "cpu/vector/vec16.h"

/* 2^r, |r| <= 1/2: relative errors are below 2e-7. */
DDP__V16_INLINE v16 ddp__exp2_v16(v16 r)
{
    v16 p = SET(0.00132647273f);

    p = FMA(p, r, SET(0.00967151299f));
    p = FMA(p, r, SET(0.0555073358f));
    p = FMA(p, r, SET(0.240222424f));
    p = FMA(p, r, SET(0.693147004f));
    return FMA(p, r, SET(1));
}

/* 1 + exp(-x), exp(-x) = 2^(k + r). */
DDP__V16_INLINE v16 ddp__exp_and_1_v16(v16 x)
{
    v16 v = _mm512_min_ps(SET(87.0f), _mm512_max_ps(SET(-87.0f), x));
    v16 k = _mm512_roundscale_ps(MUL(v, SET(-1.44269502f)), 8);
    v16 r =
        FMA(v, SET(-1.92596303e-8f), _mm512_fmsub_ps(v, SET(-1.44269502f), k));

    return ADD(SET(1), _mm512_scalef_ps(ddp__exp2_v16(r), k));
}

/* Relative errors are below 3e-7.  One Zen 5 core takes 1.6 ns, oneDNN 2.6
 * 3.5 ns, the loops of vmath.h 2.9 ns. */
DDP__V16_INLINE v16 ddp__silu_v16(v16 x)
{
    return _mm512_div_ps(x, ddp__exp_and_1_v16(x));
}

DDP__V16_INLINE v16 ddp__sigmoid_v16(v16 x)
{
    return _mm512_div_ps(SET(1), ddp__exp_and_1_v16(x));
}

/* As ddp__tanh(). */
DDP__V16_INLINE v16 ddp__tanh_v16(v16 x)
{
    v16 v = _mm512_min_ps(SET(9), _mm512_max_ps(SET(-9), x)), z = MUL(v, v);
    v16 p = SET(1.3354702e-8f), q = SET(7.7765894e-7f);

    p = FMA(p, z, SET(2.0609162e-5f));
    q = FMA(q, z, SET(3.2856449e-4f));
    p = FMA(p, z, SET(0.0034955954f));
    q = FMA(q, z, SET(0.0258770125f));
    p = FMA(p, z, SET(0.133810326f));
    q = FMA(q, z, SET(0.467143483f));
    p = FMA(p, z, SET(1));
    q = FMA(q, z, SET(1));
    return _mm512_div_ps(MUL(v, p), q);
}

/* As ddp__normal(): *gauss, exp(-x x / 2), is 2^(k + r), with x x in two
 * parts. */
DDP__V16_INLINE v16 ddp__normal_v16(v16 x, v16 *gauss)
{
    v16 a = _mm512_min_ps(SET(20), _mm512_abs_ps(x)), s = MUL(a, a);
    v16 k = _mm512_roundscale_ps(MUL(s, SET(-0.72134752f)), 8);
    v16 r = _mm512_fmsub_ps(s, SET(-0.72134751f), k), half;
    v16 rest = _mm512_fmsub_ps(a, a, s);
    v16 u = _mm512_div_ps(SET(4.24264069f), ADD(a, SET(4.24264069f)));
    v16 p = SET(0.0285204835f);

    r = FMA(s, SET(-9.6298151e-9f), FMA(rest, SET(-0.72134751f), r));
    p = FMA(p, u, SET(-0.149686545f));
    p = FMA(p, u, SET(0.276417941f));
    p = FMA(p, u, SET(-0.232102171f));
    p = FMA(p, u, SET(0.211445868f));
    p = FMA(p, u, SET(-0.00624119816f));
    p = FMA(p, u, SET(0.0979327857f));
    p = FMA(p, u, SET(0.0853038803f));
    p = FMA(p, u, SET(0.0943937972f));
    p = FMA(p, u, SET(0.0940151662f));
    *gauss = _mm512_scalef_ps(ddp__exp2_v16(r), k);
    half = MUL(MUL(p, u), *gauss);
    return _mm512_mask_sub_ps(
        half, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ), SET(1),
        half);
}

DDP__V16_INLINE v16 ddp__clamp_v16(v16 v, float low, float high)
{
    return _mm512_min_ps(SET(high), _mm512_max_ps(SET(low), v));
}

/* `act` is a constant of the loop; a NaN remains one. */
DDP__V16_INLINE v16 ddp__act_v16(v16 v, enum ddp_act act)
{
    v16 gauss;

    switch (act) {
    case DDP_RELU:
        return _mm512_max_ps(_mm512_setzero_ps(), v);
    case DDP_RELU6:
        return ddp__clamp_v16(v, 0, 6);
    case DDP_SILU:
        return ddp__silu_v16(v);
    case DDP_SIGMOID:
        return ddp__sigmoid_v16(v);
    case DDP_TANH:
        return ddp__tanh_v16(v);
    case DDP_GELU:
        return MUL(v, ddp__normal_v16(v, &gauss));
    case DDP_HARDSWISH: /* as ddp__act() */
        return MUL(
            MUL(v, ddp__clamp_v16(FMA(v, SET(0.125f), SET(0.375f)), 0, 0.75f)),
            SET(8.0f / 6));
    case DDP_HARDSIGMOID:
        return MUL(ddp__clamp_v16(ADD(v, SET(3)), 0, 6), SET(1.0f / 6));
    default:
        return v;
    }
}

DDP__V16_INLINE v16 ddp__slope_silu_v16(v16 x)
{
    v16 s = ddp__sigmoid_v16(x);

    return MUL(s, FMA(x, SUB(SET(1), s), SET(1)));
}

DDP__V16_INLINE v16 ddp__slope_gelu_v16(v16 x)
{
    v16 gauss, n = ddp__normal_v16(x, &gauss);

    return FMA(MUL(x, gauss), SET(0.39894228f), n);
}

/* dy where low < s < high, else 0. */
DDP__V16_INLINE v16 ddp__within_v16(v16 s, v16 dy, float low, float high)
{
    return _mm512_maskz_mov_ps(
        _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(s, SET(low), _CMP_GT_OQ), s,
                                SET(high), _CMP_LT_OQ),
        dy);
}

/* As ddp__act_grad(). */
DDP__V16_INLINE v16 ddp__act_grad_v16(v16 s, v16 dy, enum ddp_act act)
{
    switch (act) {
    case DDP_RELU:
        return _mm512_maskz_mov_ps(
            _mm512_cmp_ps_mask(s, _mm512_setzero_ps(), _CMP_GT_OQ), dy);
    case DDP_RELU6:
        return ddp__within_v16(s, dy, 0, 6);
    case DDP_SILU:
        return MUL(dy, ddp__slope_silu_v16(s));
    case DDP_SIGMOID:
        return MUL(dy, MUL(s, SUB(SET(1), s)));
    case DDP_TANH:
        return MUL(dy, FNMA(s, s, SET(1)));
    case DDP_GELU:
        return MUL(dy, ddp__slope_gelu_v16(s));
    case DDP_HARDSWISH: /* 0 up to -3, 1 from 3 on */
        s = _mm512_mask_mov_ps(s, _mm512_cmp_ps_mask(s, SET(-3), _CMP_LE_OQ),
                               SET(-1.5f));
        s = _mm512_mask_mov_ps(s, _mm512_cmp_ps_mask(s, SET(3), _CMP_GE_OQ),
                               SET(1.5f));
        return MUL(dy, MUL(FMA(s, SET(2), SET(3)), SET(1.0f / 6)));
    case DDP_HARDSIGMOID:
        return MUL(ddp__within_v16(s, dy, -3, 3), SET(1.0f / 6));
    default:
        return dy;
    }
}

/* Whether to store `len` results past the caches.  The limit is eight times
 * that of other loops: the next layer still finds as much in the third level.
 */
static inline bool ddp__streams_v16(const float *y, size_t len)
{
    return (uintptr_t)y % sizeof(v16) == 0 && ddp__streams(len / 8, false);
}

DDP__V16_INLINE void ddp__put_v16(float *y, v16 v, bool streams)
{
    if (streams)
        _mm512_stream_ps(y, v);
    else
        STORE(y, v);
}

#endif
#endif
