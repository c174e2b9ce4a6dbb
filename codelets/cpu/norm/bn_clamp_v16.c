/* bn_clamp_v16.c - a batch norm and limits, of pixels in a cache
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A vector of channels goes over all pixels, with its parameters in registers.
 */
#include "config.h"

#include "bn_clamp_v16.h"

#ifdef DDP__X86

enum { LANES = 16 };

DDP__V16_INLINE void put_channels(const struct ddp__bn_clamp_v16 *k,
                                  const float *x, size_t pixels, size_t c,
                                  float *to, __mmask16 m)
{
    for (size_t i = 0; i < pixels; i++, x += c, to += c) {
        v16 v = ddp__bn_clamp_v16(k, _mm512_maskz_loadu_ps(m, x), 0xffff);

        _mm512_mask_storeu_ps(to, m, v);
    }
}

DDP__V16 void ddp__bn_clamp_pixels(const struct ddp__bn_clamp *k,
                                   const float *x, size_t pixels, size_t c,
                                   float *to)
{
    for (size_t i = 0; i < c; i += LANES) {
        struct ddp__bn_clamp_v16 at = ddp__bn_clamp_at(k, i);

        put_channels(&at, x + i, pixels, c, to + i, ddp__mask16(c - i));
    }
}

#endif
