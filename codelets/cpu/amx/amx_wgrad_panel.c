/* amx_wgrad_panel.c - pixels as amx_wgrad.c multiplies them on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is read is read once, in the order of its addresses, while what follows
 * is fetched.
 */
#include "config.h"

#include "amx_wgrad_panel.h"
#include "cpu/cpu.h"
#include "cpu/isa.h"

#ifdef DDP__AMX
#include "cpu/vector/turn16.h"
#include "cpu/vector/v16.h"

enum {
    STEP = DDP__AMX_STEP,
    PAIRS = DDP__AMX_PAIRS,
    ROW = DDP__AMX_ROW,
    PANEL = DDP__AMX_CHANNELS,
    GROUP = DDP__AMX_GROUP,
    TILE = DDP__AMX_TILE,
    AHEAD = 4 << 10 /* bytes to what is fetched, at least */
};

/* ---- groups ------------------------------------------------------------- */

struct next {
    const char *at;
    size_t share;
};

DDP__V16_INLINE void fetch(struct next *n)
{
    for (size_t i = 0; i < n->share; i += 64)
        _mm_prefetch(n->at + i, _MM_HINT_T0);
    n->at += n->share;
}

DDP__V16_INLINE __m512i load(const uint16_t *p, __mmask32 mask)
{
    return mask == 0xffffffff ? _mm512_loadu_si512(p)
                              : _mm512_maskz_loadu_epi16(mask, p);
}

/* 16 channels of a step: rows of pairs become rows of channels. */
DDP__V16_INLINE void put_turned(const __m512i pair[PAIRS], uint16_t *to)
{
    __m512i out[PANEL];

    ddp__turn16(pair, out);
#pragma GCC unroll 16
    for (size_t i = 0; i < PANEL; i++)
        _mm512_store_si512(to + i * ROW, out[i]);
}

/* 32 channels of a step, those of `mask`; `p` is the first of them. */
DDP__V16_INLINE void pack_group(const struct ddp__amx_side *d,
                                const uint16_t *p, __mmask32 mask, bool turned,
                                uint16_t *to, uint16_t *to2, struct next *next)
{
    __m512i lo[PAIRS], hi[PAIRS];

#pragma GCC unroll 16
    for (size_t i = 0; i < PAIRS; i++, p += 2 * d->c) {
        __m512i a = load(p, mask), b = load(p + d->c, mask);

        fetch(next);
        lo[i] = _mm512_unpacklo_epi16(a, b);
        hi[i] = _mm512_unpackhi_epi16(a, b);
        if (!turned) {
            _mm512_store_si512(to + i * ROW, lo[i]);
            _mm512_store_si512(to2 + i * ROW, hi[i]);
        }
    }
    if (turned) {
        put_turned(lo, to);
        put_turned(hi, to2);
    }
}

DDP__V16_INLINE __m512i load_half(const uint16_t *p, __mmask16 mask)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
}

/* The last 16 channels, or fewer. */
DDP__V16_INLINE void pack_half(const struct ddp__amx_side *d, const uint16_t *p,
                               __mmask16 mask, bool turned, uint16_t *to,
                               struct next *next)
{
    __m512i pair[PAIRS];

#pragma GCC unroll 16
    for (size_t i = 0; i < PAIRS; i++, p += 2 * d->c) {
        __m512i a = load_half(p, mask), b = load_half(p + d->c, mask);

        fetch(next);
        pair[i] = _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
        if (!turned)
            _mm512_store_si512(to + i * ROW, pair[i]);
    }
    if (turned)
        put_turned(pair, to);
}

/* ---- steps -------------------------------------------------------------- */

/* 32 pixels, which become step i of a block. */
DDP__V16_INLINE void pack_step(const struct ddp__amx_side *d, const uint16_t *p,
                               size_t i, bool turned)
{
    struct next next = {(const char *)p + d->ahead, d->share};
    size_t at = 0, c = d->c;

    for (; at < c; at += GROUP) {
        size_t left = c - at;
        uint16_t *to = ddp__amx_side_panel(d, at / PANEL) + i * TILE;
        uint16_t *to2 = to + d->block * TILE;

        if (left >= GROUP)
            pack_group(d, p + at, 0xffffffff, turned, to, to2, &next);
        else if (left > PANEL)
            pack_group(d, p + at, ((__mmask32)1 << left) - 1, turned, to, to2,
                       &next);
        else
            pack_half(d, p + at, (__mmask16)((1u << left) - 1), turned, to,
                      &next);
    }
}

DDP__V16 static void pack_turned(const struct ddp__amx_side *d,
                                 const uint16_t *p, size_t i)
{
    pack_step(d, p, i, true);
}

DDP__V16 static void pack_pairs(const struct ddp__amx_side *d,
                                const uint16_t *p, size_t i)
{
    pack_step(d, p, i, false);
}

/* 32 pixels from the first on; zeros follow the last one. */
static const uint16_t *pixels_at(const struct ddp__amx_side *d, size_t first)
{
    const uint16_t *from = d->from + first * d->c;
    size_t left = d->pixels - first;

    if (left >= STEP)
        return from;
    memset(d->tail, 0, STEP * d->c * sizeof(*from));
    return memcpy(d->tail, from, left * d->c * sizeof(*from));
}

void ddp__amx_side_pack(const struct ddp__amx_side *d, size_t first, size_t i,
                        bool turned)
{
    const uint16_t *p = pixels_at(d, first);

    (turned ? pack_turned : pack_pairs)(d, p, i);
}

struct ddp__amx_side ddp__amx_side(const void *from, size_t pixels,
                                   int channels)
{
    size_t c = (size_t)channels, groups = ddp__divide_up(c, GROUP);
    size_t bytes = STEP * c * sizeof(uint16_t);

    return (struct ddp__amx_side){.from = from,
                                  .pixels = pixels,
                                  .c = c,
                                  .panels = 2 * groups,
                                  .ahead = ddp__divide_up(AHEAD, bytes) * bytes,
                                  .share =
                                      ddp__divide_up(bytes, PAIRS * groups)};
}

#endif
