/* bn_clamp_v16.h - a batch norm and limits, of values in registers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Results have the bits of bn_line_v16.c.
 */
#ifndef DDP_BN_CLAMP_V16_H
#define DDP_BN_CLAMP_V16_H

#include "bn_clamp.h"
#include "cpu/vector/v16.h"

/* to = the norm of pixels of c channels. */
DDP__X86_ONLY void ddp__bn_clamp_pixels(const struct ddp__bn_clamp *k,
                                        const float *x, size_t pixels, size_t c,
                                        float *to);

#ifdef DDP__X86

struct ddp__bn_clamp_v16 {
    v16 mean, a, shift, low, high;
};

/* Of 16 channels from c on; there may be fewer. */
DDP__V16_INLINE struct ddp__bn_clamp_v16
ddp__bn_clamp_at(const struct ddp__bn_clamp *k, size_t c)
{
    return (struct ddp__bn_clamp_v16){
        _mm512_loadu_ps(k->mean + c), _mm512_loadu_ps(k->a + c),
        _mm512_loadu_ps(k->shift + c), _mm512_set1_ps(k->low),
        _mm512_set1_ps(k->high)};
}

/* 0 where m has no one; a NaN remains one. */
DDP__V16_INLINE v16 ddp__bn_clamp_v16(const struct ddp__bn_clamp_v16 *k, v16 x,
                                      __mmask16 m)
{
    v16 z = _mm512_fmadd_ps(_mm512_sub_ps(x, k->mean), k->a, k->shift);

    return _mm512_maskz_min_ps(m, k->high, _mm512_max_ps(k->low, z));
}

#endif
#endif
