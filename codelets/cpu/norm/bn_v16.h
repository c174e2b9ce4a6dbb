/* bn_v16.h - values of batch normalisation in vectors of AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Results have the bits of the loops in bn_loops.c and bn_bwd_loops.c, which
 * run on other processors.
 */
#ifndef DDP_BN_V16_H
#define DDP_BN_V16_H

#include "bn_bwd_loops.h"
#include "cpu/elementwise/act_v16.h"
#include "cpu/vector/unit_v16.h"

#ifdef DDP__X86

DDP__UNIT_INLINE v16 ddp__bn_load_v16(const void *p, size_t i, __mmask16 m,
                                      bool b)
{
    if (!b)
        return _mm512_maskz_loadu_ps(m, (const float *)p + i);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(
                              m, (const uint16_t *)p + i)),
                          16));
}

/* ddp__sigmoid() to the last bit; of a NaN it is a number.  Since exp(-|x|) is
 * at least 2^-126, the factor 2^k is added to its exponent. */
DDP__UNIT_INLINE v16 ddp__bn_sigmoid_v16(v16 x)
{
    const v16 up = SET(12582912.0f);
    v16 v = _mm512_range_ps(x, SET(87), 14); /* -min(|x|, 87) */
    v16 shifted = FMA(v, SET(1.44269504f), up), k = SUB(shifted, up), r, q, s;

    r = FNMA(k, SET(1.42860677e-6f), FNMA(k, SET(0.693145752f), v));
    q = FMA(r, SET(0.00138145406f), SET(0.00836874545f));
    q = FMA(q, r, SET(0.041668389f));
    q = FMA(q, r, SET(0.166665211f));
    q = FMA(q, r, SET(0.49999994f));
    q = FMA(FMA(q, r, SET(1)), r, SET(1));
    q = _mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(q),
                         _mm512_slli_epi32(_mm512_castps_si512(shifted), 23)));
    s = _mm512_div_ps(SET(1), ADD(SET(1), q));
    return _mm512_mask_mul_ps(
        s, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), s, q);
}

/* As ddp__act() and ddp__act_grad() of the activations that may be fused. */
DDP__UNIT_INLINE v16 ddp__bn_act_v16(v16 v, enum ddp_act act)
{
    return act == DDP_SIGMOID
               ? _mm512_mask_mov_ps(ddp__bn_sigmoid_v16(v),
                                    _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v)
           : act == DDP_SILU ? MUL(v, ddp__bn_sigmoid_v16(v))
                             : ddp__act_v16(v, act);
}

DDP__UNIT_INLINE v16 ddp__bn_grad_v16(v16 s, v16 dy, enum ddp_act act)
{
    v16 g;

    if (act == DDP_HARDSWISH) /* a product that compilers do not fuse */
        return _mm512_mul_round_ps(dy, ddp__act_grad_v16(s, SET(1), act),
                                   _MM_FROUND_CUR_DIRECTION);
    if (act != DDP_SILU)
        return ddp__act_grad_v16(s, dy, act);
    g = ddp__bn_sigmoid_v16(s);
    return MUL(dy, MUL(g, FMA(s, SUB(SET(1), g), SET(1))));
}

/* dz from what the activation got or gave. */
DDP__UNIT_INLINE v16 ddp__bn_dz_v16(v16 z, v16 y, v16 dy,
                                    enum ddp__bn_source from)
{
    switch (from) {
    case DDP__FROM_X_RELU:
        return ddp__bn_grad_v16(z, dy, DDP_RELU);
    case DDP__FROM_X_RELU6:
        return ddp__bn_grad_v16(z, dy, DDP_RELU6);
    case DDP__FROM_X_SILU:
        return ddp__bn_grad_v16(z, dy, DDP_SILU);
    case DDP__FROM_X_HARDSWISH:
        return ddp__bn_grad_v16(z, dy, DDP_HARDSWISH);
    case DDP__FROM_RELU:
        return ddp__bn_grad_v16(y, dy, DDP_RELU);
    case DDP__FROM_RELU6:
        return ddp__bn_grad_v16(y, dy, DDP_RELU6);
    case DDP__FROM_SIGMOID:
        return ddp__bn_grad_v16(y, dy, DDP_SIGMOID);
    case DDP__FROM_TANH:
        return ddp__bn_grad_v16(y, dy, DDP_TANH);
    default:
        return dy;
    }
}

#endif
#endif
