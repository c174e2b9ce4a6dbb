/* half.h - bf16 and f16 as f32, and back
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HALF_H
#define DDP_HALF_H

#include <stddef.h>
#include <stdint.h>

/* bf16 is the upper half of an f32; rounding is to nearest even. */
static inline float ddp__from_bf16(uint16_t b)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)b << 16};

    return v.f;
}

static inline uint16_t ddp__to_bf16(float f)
{
    union {
        float f;
        uint32_t u;
    } v = {f};

    if ((v.u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((v.u >> 16) | 0x40); /* a NaN remains a NaN */
    return (uint16_t)((v.u + 0x7fff + ((v.u >> 16) & 1)) >> 16);
}

/* To values that bf16 has. */
static inline void ddp__round_to_bf16(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = ddp__from_bf16(ddp__to_bf16(x[i]));
}

/* f16: sign, 5 bits of exponent, 10 of fraction.  As an f32 with the same bits
 * its exponent is 112 too small, which a product repairs, subnormals too. */
static inline float ddp__from_f16(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)(h & 0x7fff) << 13};

    if (v.u >= 0x0f800000)
        v.u += 0x70000000; /* infinity, NaN */
    else
        v.f *= 0x1p112f;
    v.u |= (uint32_t)(h & 0x8000) << 16;
    return v.f;
}

/* Rounds to nearest even; 65520 and more become infinity. */
static inline uint16_t ddp__to_f16(float f)
{
    union {
        float f;
        uint32_t u;
    } v = {f};
    uint32_t sign = v.u >> 16 & 0x8000;

    v.u &= 0x7fffffff;
    if (v.u > 0x7f800000)
        return (uint16_t)(sign | 0x7e00); /* NaN */
    if (v.u >= 0x47800000)
        return (uint16_t)(sign | 0x7c00); /* 2^16 and more */
    if (v.u < 0x38800000) {
        v.f += 0.5f; /* below 2^-14: its last bit is worth 2^-24, as f16's */
        return (uint16_t)(sign | (v.u - 0x3f000000));
    }
    v.u += 0xc8000fff + (v.u >> 13 & 1); /* exponent - 112, and half a bit */
    return (uint16_t)(sign | v.u >> 13);
}

#endif
