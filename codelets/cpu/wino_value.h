/* wino_value.h - pixels into and out of Winograd's transforms
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_VALUE_H
#define DDP_CPU_WINO_VALUE_H

#include <math.h>

#include "cpu.h"
#include "vmath.h"
#include "wino_kind.h"
#include "wino_tile.h"
#include "wino_v16.h"

/* 16 of them, f32 or bf16 (b, a constant). */
DDP__WINO_INLINE v16 load_values(const void *p, bool b)
{
    if (!b)
        return LOAD(p);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

/* From channel c on of a pixel of a tile that may be padded. */
DDP__WINO_INLINE v16 load_pixel(const void *p, size_t c, bool padded, bool b)
{
    return load_values(padded && p == ddp__wino_no_pixel ? p : ddp__at(p, c, b),
                       b);
}

/* bf16 as by ddp__round_bf16(). */
DDP__WINO_INLINE void store_values(void *p, v16 v, bool b, bool past)
{
    __m512i u = _mm512_castps_si512(v), up;

    if (!b) {
        if (past)
            _mm512_stream_ps(p, v);
        else
            STORE(p, v);
        return;
    }
    up = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    up = _mm512_add_epi32(_mm512_add_epi32(u, up), _mm512_set1_epi32(0x7fff));
    up = _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u,
                              _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
}

/* The NaN of v, if any, is kept. */
DDP__WINO_INLINE v16 activate(v16 v, enum ddp_act act)
{
    float f[16];

    STORE(f, v);
    if (act == DDP_SILU)
        for (int i = 0; i < 16; i++)
            f[i] = ddp__act(f[i], DDP_SILU);
    else
        for (int i = 0; i < 16; i++)
            f[i] = ddp__act(f[i], DDP_HARDSWISH);
    return LOAD(f);
}

/* Identity, ReLU or ReLU6; a NaN remains one. */
DDP__WINO_INLINE v16 cut_off(v16 v, enum ddp_act act)
{
    v = _mm512_max_ps(SET(act == DDP_IDENTITY ? -INFINITY : 0), v);
    return _mm512_min_ps(SET(act == DDP_RELU6 ? 6 : INFINITY), v);
}

/* Pixel (i, j) of the target, from channel c on; r has the bias. */
DDP__WINO_INLINE void put_pixel(const struct ddp__wino_target *to, int i, int j,
                                size_t c, v16 r, bool b)
{
    void *y;

    if (i >= to->rows || j >= to->cols)
        return;
    y = ddp__to(to->y, (size_t)i * to->pitch + (size_t)j * to->pixel + c, b);
    if (to->sum)
        r = ADD(r, load_values(y, b));
    r = to->act > DDP_RELU6 ? activate(r, to->act) : cut_off(r, to->act);
    store_values(y, r, b, to->past);
}

#endif
