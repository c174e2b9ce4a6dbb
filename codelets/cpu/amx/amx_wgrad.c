/* amx_wgrad.c - weight gradients of 1x1 bf16 layers of any channels on AMX
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step has 32 pixels.  Pairs of them are interleaved, channel by channel,
 * which is how tiles read their right operand; the side with fewer channels is
 * also turned, to be the left one:
 *
 *     few   [panel of 16 channels][step][16 channels][32 pixels]
 *     many  [panel][step][16 pairs of pixels][16 channels][2]
 *
 * To interleave within lanes of 128 bits takes one instruction instead of
 * three; channels of a group of 32 are then in another order (place()), which
 * is undone once, when the result is stored.  Both operands are read once, in
 * the order of their addresses, while what follows is fetched.
 *
 * One of two busy cores of an Intel Xeon with AMX under load, 16 images,
 * milliseconds of processor time (tests/kernelbench amx_wgrad:), by oneDNN 2.6,
 * by amx.c or, of up to 24 channels, by products of f32, and in this way:
 *
 *     112x112, 16 to 96    7.1 4.6 3.8      112x112, 32 to 16    2.4 1.6 1.5
 *     56x56, 24 to 144     2.2 2.3 1.5      56x56, 144 to 24     2.9 2.4 1.5
 *     28x28, 40 to 240     1.04  - 0.66     28x28, 240 to 40     1.39  - 0.60
 *     14x14, 112 to 672    1.9   - 0.72     14x14, 672 to 112    2.3   - 0.71
 *     56x56, 64 to 256    10.6 5.5 3.8      56x56, 64 to 64      2.4 2.0 1.5
 *     28x28, 512 to 128    8.2 3.2 3.0      28x28, 128 to 512    6.0 3.1 3.1
 *
 * The first five take 0.8 to 0.97 of what a copy of as many bytes takes.
 *
 * An output is one sum in f32 over all pixels: against f64, errors are up to
 * 1e-6 of the norm, at most 2^-23 sqrt(pixels / 3) (tests/test_wgrad.c).
 */
#include "config.h"

#include "amx_run.h"
#include "amx_tile.h"
#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/thread.h"

#ifdef DDP__AMX
#include "cpu/vector/turn16.h"

#define AMX __attribute__((target("avx512f,avx512bw,avx512vl")))
#define AMX_INLINE                                                             \
    static inline                                                              \
        __attribute__((always_inline, target("avx512f,avx512bw,avx512vl")))

enum {
    STEP = DDP__AMX_STEP,
    PAIRS = DDP__AMX_PAIRS,
    ROW = DDP__AMX_ROW,
    PANEL = 16, /* channels of a tile */
    GROUP = 2 * PANEL,
    TILE = PANEL * ROW, /* bf16 */
    EACH = 8,           /* channels are multiples of it */
    LEAST_PIXELS = 7 * 7,
    MOST_SUMS = 1 << 17,     /* with more, amx.c reads them less often */
    BLOCK_BYTES = 256 << 10, /* of both operands: a part of the second level */
    LEAST_STEPS = 4,
    MOST_STEPS = 32,
    AHEAD = 4 << 10 /* bytes to what is fetched, at least */
};

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_BF16 && k->groups == 1 && k->kh == 1 &&
           k->kw == 1 && k->sh == 1 && k->sw == 1 && s->h == s->oh &&
           s->w == s->ow && s->c % EACH == 0 && s->o % EACH == 0 &&
           (s->c % GROUP || s->o % GROUP || s->c * s->o <= MOST_SUMS) &&
           s->oh * s->ow >= LEAST_PIXELS && ddp__amx_here();
}

/* x or dy, and its panels of a block. */
struct side {
    const uint16_t *from;
    uint16_t *tail; /* the last pixels, fewer than a step */
    uint16_t *to;
    size_t c, panels; /* an even number */
    size_t ahead;     /* bytes from a step to what is fetched meanwhile */
    size_t share;     /* bytes of that for a pair and a group */
};

struct run {
    struct side few, many;
    size_t pixels, block; /* block: steps */
    float *sum;           /* [few.panels PANEL][many.panels PANEL] */
};

/* ---- panels ------------------------------------------------------------- */

struct next {
    const char *at;
    size_t share;
};

AMX_INLINE void fetch(struct next *n)
{
    for (size_t i = 0; i < n->share; i += 64)
        _mm_prefetch(n->at + i, _MM_HINT_T0);
    n->at += n->share;
}

AMX_INLINE __m512i load(const uint16_t *p, __mmask32 mask)
{
    return mask == 0xffffffff ? _mm512_loadu_si512(p)
                              : _mm512_maskz_loadu_epi16(mask, p);
}

/* 16 channels of a step: rows of pairs become rows of channels. */
AMX_INLINE void put_turned(const __m512i pair[PAIRS], uint16_t *to)
{
    __m512i out[PANEL];

    ddp__turn16(pair, out);
#pragma GCC unroll 16
    for (size_t i = 0; i < PANEL; i++)
        _mm512_store_si512(to + i * ROW, out[i]);
}

/* 32 channels of a step, those of `mask`; `p` is the first of them. */
AMX_INLINE void pack_group(const struct side *d, const uint16_t *p,
                           __mmask32 mask, bool turned, uint16_t *to,
                           uint16_t *to2, struct next *next)
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

AMX_INLINE __m512i load_half(const uint16_t *p, __mmask16 mask)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
}

/* The last 16 channels, or fewer. */
AMX_INLINE void pack_half(const struct side *d, const uint16_t *p,
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

/* Where a panel's tiles begin. */
static uint16_t *panel_of(const struct run *r, const struct side *d, size_t i)
{
    return d->to + i * r->block * TILE;
}

/* 32 pixels, which become step i of a block. */
AMX_INLINE void pack_step(const struct run *r, const struct side *d,
                          const uint16_t *p, size_t i, bool turned)
{
    struct next next = {(const char *)p + d->ahead, d->share};
    size_t at = 0, c = d->c;

    for (; at < c; at += GROUP) {
        size_t left = c - at;
        uint16_t *to = panel_of(r, d, at / PANEL) + i * TILE;
        uint16_t *to2 = to + r->block * TILE;

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

AMX static void pack_few(const struct run *r, const uint16_t *p, size_t i)
{
    pack_step(r, &r->few, p, i, true);
}

AMX static void pack_many(const struct run *r, const uint16_t *p, size_t i)
{
    pack_step(r, &r->many, p, i, false);
}

/* 32 pixels from the first on; zeros follow the last one. */
static const uint16_t *pixels_at(const struct run *r, const struct side *d,
                                 size_t first)
{
    const uint16_t *from = d->from + first * d->c;
    size_t left = r->pixels - first;

    if (left >= STEP)
        return from;
    memset(d->tail, 0, STEP * d->c * sizeof(*from));
    return memcpy(d->tail, from, left * d->c * sizeof(*from));
}

/* ---- products ----------------------------------------------------------- */

/* 32 of the few channels times 32 of the many, over a block. */
DDP__AMX_TARGET static void multiply_panels(const struct run *r, size_t i,
                                            size_t j, size_t steps, bool add)
{
    size_t pitch = r->many.panels * PANEL;
    float *sum = r->sum + i * PANEL * pitch + j * PANEL;
    const uint16_t *a = panel_of(r, &r->few, i), *b = panel_of(r, &r->many, j);

    ddp__amx_begin(sum, pitch, add);
    for (size_t k = 0; k < steps; k++, a += TILE, b += TILE)
        ddp__amx_multiply(a, a + r->block * TILE, b, b + r->block * TILE);
    ddp__amx_end(sum, pitch);
}

static void add_block(const struct run *r, size_t first, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        size_t at = first + i * STEP;

        pack_few(r, pixels_at(r, &r->few, at), i);
        pack_many(r, pixels_at(r, &r->many, at), i);
    }
    for (size_t j = 0; j < r->many.panels; j += 2)
        for (size_t i = 0; i < r->few.panels; i += 2)
            multiply_panels(r, i, j, steps, first > 0);
}

DDP__AMX_TARGET static void add_all(const struct run *r)
{
    struct ddp__amx_tiles t = ddp__amx_tiles();
    size_t all = ddp__divide_up(r->pixels, STEP), steps;

    ddp__amx_configure(&t);
    for (size_t i = 0; i < all; i += steps) {
        steps = all - i < r->block ? all - i : r->block;
        add_block(r, i * STEP, steps);
    }
    _tile_release();
}

/* ---- the gradient ------------------------------------------------------- */

/* Where channel i of c is among those of the panels.  Lanes of 128 bits of a
 * group's panels have four channels each, in turns. */
static size_t place(size_t i, size_t c)
{
    size_t group = i - i % GROUP, k = i % GROUP;

    if (c - group <= PANEL)
        return i;
    return group + k / 4 % 2 * PANEL + k / 8 * 4 + k % 4;
}

static void put_gradient(const struct run *r, bool few_x, bool add, float *dw)
{
    const struct side *x = few_x ? &r->few : &r->many;
    const struct side *dy = few_x ? &r->many : &r->few;
    size_t pitch = r->many.panels * PANEL;
    size_t row = few_x ? 1 : pitch, column = few_x ? pitch : 1;

    for (size_t o = 0; o < dy->c; o++) {
        const float *from = r->sum + place(o, dy->c) * row;

        for (size_t i = 0; i < x->c; i += 4, dw += 4) {
            const float *four = from + place(i, x->c) * column;

            for (size_t k = 0; k < 4; k++)
                dw[k] = (add ? dw[k] : 0) + four[k * column];
        }
    }
}

/* ---- layers ------------------------------------------------------------- */

static struct side side_of(const void *from, int channels)
{
    size_t c = (size_t)channels, groups = ddp__divide_up(c, GROUP);
    size_t bytes = STEP * c * sizeof(uint16_t);

    return (struct side){.from = from,
                         .c = c,
                         .panels = 2 * groups,
                         .ahead = ddp__divide_up(AHEAD, bytes) * bytes,
                         .share = ddp__divide_up(bytes, PAIRS * groups)};
}

/* Memory for the panels, the last pixels and the sums.  What a panel without
 * channels holds is in sums that nobody reads. */
static int find_room(struct run *r)
{
    size_t panels = r->few.panels + r->many.panels, c = r->few.c + r->many.c;
    size_t steps = BLOCK_BYTES / (panels * TILE * sizeof(uint16_t));
    size_t sums = r->few.panels * r->many.panels * PANEL * PANEL;
    uint16_t *room;

    steps = steps < LEAST_STEPS ? LEAST_STEPS : steps;
    r->block = steps < MOST_STEPS ? steps : MOST_STEPS;
    room = ddp__scratch((panels * r->block * TILE + STEP * c) * sizeof(*room) +
                        sums * sizeof(*r->sum));
    if (!room)
        return DDP_ENOMEM;
    r->few.to = room;
    r->many.to = room + r->few.panels * r->block * TILE;
    r->few.tail = room + panels * r->block * TILE;
    r->many.tail = r->few.tail + STEP * r->few.c;
    r->sum = (float *)(void *)(r->many.tail + STEP * r->many.c);
    return 0;
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    bool few_x = s->c < s->o;
    struct run r = {.few = few_x ? side_of(x, s->c) : side_of(dy, s->o),
                    .many = few_x ? side_of(dy, s->o) : side_of(x, s->c),
                    .pixels = (size_t)s->n * (size_t)s->oh * (size_t)s->ow};

    if (find_room(&r) < 0)
        return DDP_ENOMEM;
    add_all(&r);
    put_gradient(&r, few_x, accumulate, dw);
    return 0;
}

const struct ddp__gradient ddp__amx_wgrad = {
    .name = "products of pixels on AMX", .fits = fits, .run = run};

#endif
