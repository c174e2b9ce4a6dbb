/* vmath.h - exp, tanh, erfc and the activations, for loops that vectorise
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Relative errors are below 1e-6.  No branches on data: only selects.
 */
#ifndef DDP_VMATH_H
#define DDP_VMATH_H

#include "cpu/cpu.h"

/* exp(x - less), less small, -87 <= x <= 88: 2^k exp(r), |r| <= ln 2 / 2, where
 * 1 + r + r r q(r) has the least maximum error, 3.1e-9.  A sum of k and 1.5
 * 2^23 has k in its last bits. */
DDP__INLINE float ddp__exp_inside(float x, float less)
{
    const float round = 12582912.0f;
    union {
        float f;
        uint32_t u;
    } scale = {x * 1.44269504f + round};
    float k = scale.f - round, r, q;

    scale.u = (scale.u << 23) + 0x3f800000;
    r = (x - k * 0.693145752f) - k * 1.42860677e-6f - less;
    q = 0.00138145406f;
    q = q * r + 0.00836874545f;
    q = q * r + 0.041668389f;
    q = q * r + 0.166665211f;
    q = q * r + 0.49999994f;
    q = (q * r + 1) * r + 1;
    return q * scale.f; /* q of a NaN is one */
}

DDP__INLINE float ddp__exp2part(float x, float less)
{
    float v = x < -87.0f ? -87.0f : x;

    v = v > 88.0f ? 88.0f : v;
    return x < -87.0f ? 0.0f : ddp__exp_inside(v, less);
}

DDP__INLINE float ddp__exp(float x)
{
    return ddp__exp2part(x, 0);
}

/* By exp(-|x|), so that nothing overflows; at least exp(-87). */
DDP__INLINE float ddp__sigmoid(float x)
{
    union {
        float f;
        uint32_t u;
    } a = {x};
    float e, s;

    a.u |= 0x80000000;
    e = ddp__exp_inside(a.f < -87.0f ? -87.0f : a.f, 0);
    s = 1.0f / (1.0f + e);
    return x < 0 ? e * s : s;
}

/* The rational function with the least maximum relative error, 2.1e-8; from 9
 * on the result is 1. */
DDP__INLINE float ddp__tanh(float x)
{
    float v = x < -9.0f ? -9.0f : x, z, p, q;

    v = v > 9.0f ? 9.0f : v;
    z = v * v;
    p = 1.3354702e-8f;
    p = p * z + 2.0609162e-5f;
    p = p * z + 0.0034955954f;
    p = p * z + 0.133810326f;
    p = p * z + 1;
    q = 7.7765894e-7f;
    q = q * z + 3.2856449e-4f;
    q = q * z + 0.0258770125f;
    q = q * z + 0.467143483f;
    q = q * z + 1;
    return v * p / q;
}

/* exp(-x x / 2) with x x in two parts, since its rounding would be magnified.
 */
DDP__INLINE float ddp__gauss(float x)
{
    union {
        float f;
        uint32_t u;
    } h = {x};

    h.u &= 0xfffff000u;
    return ddp__exp2part(-0.5f * h.f * h.f, 0.5f * (x - h.f) * (x + h.f));
}

/* The normal distribution of x: erfc(-x / sqrt 2) / 2.  With a = |x| and u =
 * 3 sqrt 2 / (a + 3 sqrt 2) half of erfc(a / sqrt 2) is u P(u) exp(-a a / 2); P
 * is a Chebyshev fit. */
DDP__INLINE float ddp__normal(float x, float *gauss)
{
    static const float p[] = {0.0285204835f, -0.149686545f, 0.276417941f,
                              -0.232102171f, 0.211445868f,  -0.00624119816f,
                              0.0979327857f, 0.0853038803f, 0.0943937972f,
                              0.0940151662f};
    float a = x < 0 ? -x : x;
    float u = 4.24264069f / (a + 4.24264069f), v = p[0], half;

    *gauss = ddp__gauss(a > 14 ? 14 : a);
    for (int i = 1; i < 10; i++)
        v = v * u + p[i];
    half = u * v * *gauss;
    return x < 0 ? half : 1 - half;
}

DDP__INLINE float ddp__clamp(float v, float low, float high)
{
    v = v < low ? low : v;
    return v > high ? high : v;
}

/* The activation of v; a NaN remains one.  `a` is a constant of the loop. */
DDP__INLINE float ddp__act(float v, enum ddp_act a)
{
    float gauss;

    switch (a) {
    case DDP_RELU:
        return v < 0 ? 0 : v;
    case DDP_RELU6:
        return ddp__clamp(v, 0, 6);
    case DDP_SILU:
        return v * ddp__sigmoid(v);
    case DDP_SIGMOID:
        return ddp__sigmoid(v);
    case DDP_TANH:
        return ddp__tanh(v);
    case DDP_GELU:
        return v * ddp__normal(v, &gauss);
    case DDP_HARDSWISH:
        /* an eighth of 0 to 6: the product is finite and has the same bits */
        return v * ddp__clamp(v * 0.125f + 0.375f, 0, 0.75f) * (8.0f / 6);
    case DDP_HARDSIGMOID:
        return ddp__clamp(v + 3, 0, 6) * (1.0f / 6);
    default:
        return v;
    }
}

DDP__INLINE float ddp__act_slope_silu(float x)
{
    float s = ddp__sigmoid(x);

    return s * (1 + x * (1 - s));
}

DDP__INLINE float ddp__act_slope_gelu(float x)
{
    float gauss, n = ddp__normal(x, &gauss);

    return n + x * gauss * 0.39894228f;
}

/* dy times the slope; s is y where ddp__act_from_y(), else x. */
DDP__INLINE float ddp__act_grad(float s, float dy, enum ddp_act a)
{
    switch (a) {
    case DDP_RELU:
        return s > 0 ? dy : 0;
    case DDP_RELU6:
        return ((s > 0) & (s < 6)) ? dy : 0;
    case DDP_SILU:
        return dy * ddp__act_slope_silu(s);
    case DDP_SIGMOID:
        return dy * (s * (1 - s));
    case DDP_TANH:
        return dy * (1 - s * s);
    case DDP_GELU:
        return dy * ddp__act_slope_gelu(s);
    case DDP_HARDSWISH:
        s = s <= -3 ? -1.5f : s;
        s = s >= 3 ? 1.5f : s; /* where the slope is 1, too */
        return dy * ((2 * s + 3) * (1.0f / 6));
    case DDP_HARDSIGMOID:
        return ((s > -3) & (s < 3)) ? dy * (1.0f / 6) : 0;
    default:
        return dy;
    }
}

#endif
