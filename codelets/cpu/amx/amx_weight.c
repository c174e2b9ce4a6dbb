/* amx_weight.c - weights of 1x1 convolutions as AMX tiles read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "amx_weight.h"
#include "base/error.h"
#include "cpu/vector/unit_v16.h"

enum { PANEL = DDP__AMX_PANEL };

size_t ddp__amx_weight_size(const struct ddp__conv_shape *s)
{
    size_t outputs = ddp__amx_panels(s) * PANEL;

    return outputs * (size_t)s->c * sizeof(uint16_t) +
           (s->conv.bias ? outputs * sizeof(float) : 0);
}

#ifdef DDP__X86
#include "cpu/vector/turn16.h"
#include "cpu/vector/v16.h"

/* `count` outputs of 16, whose rows hold c inputs: 16 pairs at a time. */
DDP__UNIT_TARGET static void pack_panel(const float *w, size_t c, size_t count,
                                        uint16_t *to)
{
    for (size_t i = 0; i < c; i += 32) {
        size_t left = c - i, pairs = left < 32 ? left / 2 : 16;
        __mmask16 low = ddp__mask16(left),
                  high = left > 16 ? ddp__mask16(left - 16) : 0;
        __m512i in[16], out[16];

        for (size_t k = 0; k < 16; k++) {
            const float *at = w + k * c + i;

            in[k] = k < count ? (__m512i)_mm512_cvtne2ps_pbh(
                                    _mm512_maskz_loadu_ps(high, at + 16),
                                    _mm512_maskz_loadu_ps(low, at))
                              : _mm512_setzero_si512();
        }
        ddp__turn16(in, out);
        for (size_t k = 0; k < pairs; k++, to += 2 * PANEL)
            _mm512_storeu_si512(to, out[k]);
    }
}

/* The same from rows of all o outputs, one for each input. */
DDP__UNIT_TARGET static void pack_turned(const float *w, size_t c, size_t o,
                                         size_t count, uint16_t *to)
{
    __mmask16 mask = ddp__mask16(count);

    for (size_t i = 0; i < c; i += 2, to += 2 * PANEL) {
        v16 v[2] = {_mm512_maskz_loadu_ps(mask, w + i * o),
                    _mm512_maskz_loadu_ps(mask, w + (i + 1) * o)};

        _mm512_storeu_si512(to, ddp__unit_round_bf16(v));
    }
}

void ddp__amx_weight_pack(const struct ddp__conv_shape *s, const float *w,
                          bool turn, void *to)
{
    size_t c = (size_t)s->c, o = (size_t)s->o, all = ddp__amx_panels(s) * PANEL;
    uint16_t *panel = to;
    float *bias;

    for (size_t j = 0; j < o; j += PANEL, panel += c * PANEL) {
        size_t count = o - j < PANEL ? o - j : PANEL;

        if (turn)
            pack_turned(w + j, c, o, count, panel);
        else
            pack_panel(w + j * c, c, count, panel);
    }
    bias = (float *)(void *)panel;
    for (size_t j = 0; s->conv.bias && j < all; j++)
        bias[j] = j < o ? w[c * o + j] : 0;
}

#endif
