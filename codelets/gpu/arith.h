/* arith.h - what the bodies of libddp's kernels are written with
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Bodies are written once, in headers that nvcc and a C compiler read, so that
 * tests can run them on a CPU: the same threads, the same order of additions.
 * There are two kinds.
 *
 * Items     a body is called with the number of an item, mostly eight channels
 *           of a pixel.  Which thread does which item does not matter.
 * Blocks    a body is called by the THREADS threads of a block and consists of
 *           regions, DDP__EACH (thread, count) { ... }: all threads below count
 *           run one, then wait for each other.  What one region leaves for
 *           another is in the block's shared memory.
 *
 * How the work falls into items and blocks follows from shapes alone, never
 * from the GPU, and sums are made by fixed trees: equal bits every time.
 */
#ifndef DDP_ARITH_H
#define DDP_ARITH_H

#include <math.h>

#include "base/device.h"
#include "kernels.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define DDP__EACH(thread, count)                                               \
    for (unsigned thread = threadIdx.x, run_ = 1; run_;                        \
         run_ = 0, __syncthreads())                                            \
        if (thread < (count))
#else
#include "base/half.h"
#include "ops.h"
#define DDP__EACH(thread, count)                                               \
    for (unsigned thread = 0; thread < (count); thread++)
#endif

/* ---- values in memory --------------------------------------------------- */

/* Activation i, of any type. */
DDP__DEVICE float ddp__k_get(enum ddp_dtype type, const void *p, size_t i)
{
    switch (type) {
    case DDP_BF16:
#ifdef __CUDACC__
        return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
#else
        return ddp__from_bf16(((const uint16_t *)p)[i]);
#endif
    case DDP_F16:
#ifdef __CUDACC__
        return __half2float(((const __half *)p)[i]);
#else
        return ddp__from_f16(((const uint16_t *)p)[i]);
#endif
    default:
        return ((const float *)p)[i];
    }
}

DDP__DEVICE void ddp__k_put(enum ddp_dtype type, void *p, size_t i, float v)
{
    switch (type) {
    case DDP_BF16:
#ifdef __CUDACC__
        ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn(v);
#else
        ((uint16_t *)p)[i] = ddp__to_bf16(v);
#endif
        break;
    case DDP_F16:
#ifdef __CUDACC__
        ((__half *)p)[i] = __float2half_rn(v);
#else
        ((uint16_t *)p)[i] = ddp__to_f16(v);
#endif
        break;
    default:
        ((float *)p)[i] = v;
    }
}

#ifdef __CUDACC__
/* Two values of 16 bits. */
DDP__DEVICE float2 ddp__k_unpack(enum ddp_dtype type, unsigned u)
{
    __half2 pair;

    if (type == DDP_BF16)
        return make_float2(__uint_as_float(u << 16),
                           __uint_as_float(u & 0xffff0000u));
    memcpy(&pair, &u, sizeof(pair));
    return __half22float2(pair);
}

DDP__DEVICE unsigned ddp__k_pack(enum ddp_dtype type, float low, float high)
{
    unsigned u;

    if (type == DDP_BF16) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);

        memcpy(&u, &pair, sizeof(u));
    } else {
        __half2 pair = __floats2half2_rn(low, high);

        memcpy(&u, &pair, sizeof(u));
    }
    return u;
}

DDP__DEVICE void ddp__k_load16(enum ddp_dtype type, const void *p, size_t at,
                               float v[DDP__WIDTH])
{
    uint4 u = *(const uint4 *)((const uint16_t *)p + at);
    unsigned part[4] = {u.x, u.y, u.z, u.w};

    for (int i = 0; i < 4; i++) {
        float2 f = ddp__k_unpack(type, part[i]);

        v[2 * i] = f.x;
        v[2 * i + 1] = f.y;
    }
}

DDP__DEVICE void ddp__k_store16(enum ddp_dtype type, void *p, size_t at,
                                const float v[DDP__WIDTH])
{
    *(uint4 *)((uint16_t *)p + at) = make_uint4(
        ddp__k_pack(type, v[0], v[1]), ddp__k_pack(type, v[2], v[3]),
        ddp__k_pack(type, v[4], v[5]), ddp__k_pack(type, v[6], v[7]));
}

DDP__DEVICE void ddp__k_load32(const void *p, size_t at, float v[DDP__WIDTH])
{
    const float4 *f = (const float4 *)((const float *)p + at);
    float4 a = f[0], b = f[1];

    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

DDP__DEVICE void ddp__k_store32(void *p, size_t at, const float v[DDP__WIDTH])
{
    float4 *f = (float4 *)((float *)p + at);

    f[0] = make_float4(v[0], v[1], v[2], v[3]);
    f[1] = make_float4(v[4], v[5], v[6], v[7]);
}
#endif

/* Values at .. at + count - 1, the rest of v 0.  wide: the address is a
 * multiple of 16 bytes and count is DDP__WIDTH. */
DDP__DEVICE void ddp__k_load(enum ddp_dtype type, const void *p, size_t at,
                             int count, bool wide, float v[DDP__WIDTH])
{
#ifdef __CUDACC__
    if (wide && type == DDP_F32) {
        ddp__k_load32(p, at, v);
        return;
    }
    if (wide) {
        ddp__k_load16(type, p, at, v);
        return;
    }
#else
    (void)wide;
#endif
    for (int j = 0; j < DDP__WIDTH; j++)
        v[j] = j < count ? ddp__k_get(type, p, at + (size_t)j) : 0;
}

DDP__DEVICE void ddp__k_store(enum ddp_dtype type, void *p, size_t at,
                              int count, bool wide, const float v[DDP__WIDTH])
{
#ifdef __CUDACC__
    if (wide && type == DDP_F32) {
        ddp__k_store32(p, at, v);
        return;
    }
    if (wide) {
        ddp__k_store16(type, p, at, v);
        return;
    }
#else
    (void)wide;
#endif
    for (int j = 0; j < DDP__WIDTH; j++)
        if (j < count)
            ddp__k_put(type, p, at + (size_t)j, v[j]);
}

/* How many of DDP__WIDTH values from `at` on there are among len. */
DDP__DEVICE int ddp__k_count(size_t at, size_t len)
{
    return len - at < DDP__WIDTH ? (int)(len - at) : DDP__WIDTH;
}

/* ---- activations -------------------------------------------------------- */

DDP__DEVICE float ddp__k_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* A NaN comes out as a NaN. */
DDP__DEVICE float ddp__k_clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

DDP__DEVICE float ddp__k_act(enum ddp_act act, float x)
{
    switch (act) {
    case DDP_RELU:
        return x < 0 ? 0 : x;
    case DDP_RELU6:
        return ddp__k_clamp(x, 0, 6);
    case DDP_SILU:
        return x * ddp__k_sigmoid(x);
    case DDP_SIGMOID:
        return ddp__k_sigmoid(x);
    case DDP_TANH:
        return tanhf(x);
    case DDP_GELU:
        return x * 0.5f * erfcf(-x * 0.70710678f);
    case DDP_HARDSWISH:
        /* an eighth of 0 to 6: the product is finite and has the same bits */
        return x * ddp__k_clamp(x * 0.125f + 0.375f, 0, 0.75f) / 0.75f;
    case DDP_HARDSIGMOID:
        return ddp__k_clamp(x + 3, 0, 6) / 6;
    default:
        return x;
    }
}

DDP__DEVICE float ddp__k_silu_slope(float x)
{
    float s = ddp__k_sigmoid(x);

    return s * (1 + x * (1 - s));
}

DDP__DEVICE float ddp__k_gelu_slope(float x)
{
    return 0.5f * erfcf(-x * 0.70710678f) + x * expf(-x * x / 2) * 0.39894228f;
}

/* The slope of act, given y or x as ddp__act_from_y() says. */
DDP__DEVICE float ddp__k_slope(enum ddp_act act, float s)
{
    switch (act) {
    case DDP_RELU:
        return s > 0 ? 1.0f : 0.0f;
    case DDP_RELU6:
        return s > 0 && s < 6 ? 1.0f : 0.0f;
    case DDP_SILU:
        return ddp__k_silu_slope(s);
    case DDP_SIGMOID:
        return s * (1 - s);
    case DDP_TANH:
        return 1 - s * s;
    case DDP_GELU:
        return ddp__k_gelu_slope(s);
    case DDP_HARDSWISH:
        return s <= -3 ? 0 : s >= 3 ? 1 : (2 * s + 3) / 6;
    case DDP_HARDSIGMOID:
        return s > -3 && s < 3 ? 1.0f / 6 : 0;
    default:
        return 1;
    }
}

/* v = act(v).  The two that most values meet come first: a choice for each of
 * them would cost more than they do. */
DDP__DEVICE void ddp__k_act_all(enum ddp_act act, float v[DDP__WIDTH])
{
    if (act == DDP_IDENTITY)
        return;
    if (act == DDP_RELU) {
        for (int j = 0; j < DDP__WIDTH; j++)
            v[j] = v[j] < 0 ? 0 : v[j];
        return;
    }
    for (int j = 0; j < DDP__WIDTH; j++)
        v[j] = ddp__k_act(act, v[j]);
}

/* d = d act'(s) */
DDP__DEVICE void ddp__k_slope_all(enum ddp_act act, const float s[DDP__WIDTH],
                                  float d[DDP__WIDTH])
{
    if (act == DDP_RELU) {
        for (int j = 0; j < DDP__WIDTH; j++)
            d[j] *= s[j] > 0 ? 1.0f : 0.0f;
        return;
    }
    for (int j = 0; j < DDP__WIDTH; j++)
        d[j] *= ddp__k_slope(act, s[j]);
}

#endif
