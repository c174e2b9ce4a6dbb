/* amx_pixels.c - 1x1 convolutions of training in bf16 on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Forward passes and data gradients of stride 1.  A product is that of 32
 * pixels, which are tiles where they lie in memory, and 32 outputs; it goes
 * through a buffer in the first-level cache, is rounded, and passes the caches
 * if the result is large.  A line of 32 outputs goes straight to its place;
 * where lines hold values of two pixels, all outputs of some pixels are
 * gathered first.  Memory limits most layers, so pixels are fetched long before
 * their turn.
 *
 * Two busy cores of an Intel Xeon with AMX under load, milliseconds of 16
 * images by oneDNN 2.6 and in this way, the least of several runs, packing of
 * the weights included; kernelbench has more:
 *
 *     112x112, 16 to 96     6.15 2.31     96 to 16     3.66 3.25
 *     112x112, 32 to 16     1.47 1.09     16 to 32     1.74 0.94
 *     56x56, 24 to 144      2.37 1.29     144 to 24    2.20 1.41
 *     28x28, 40 to 240      1.10 0.59     240 to 40    0.90 0.80
 *     14x14, 80 to 480      0.73 0.50     480 to 80    0.49 0.52
 *     14x14, 96 to 576      0.69 0.48     576 to 96    0.56 0.57
 *     14x14, 112 to 672     0.91 0.47     672 to 112   0.81 0.73
 *     7x7, 192 to 1152      0.47 0.36     1152 to 192  0.52 0.44
 *     of 8 images:
 *     56x56, 64 to 256      2.24 1.67     256 to 64    1.89 1.91
 *     28x28, 128 to 512     1.47 0.90     512 to 128   1.30 1.36
 *     14x14, 256 to 1024    1.10 0.84     1024 to 256  1.08 0.97
 *
 * Three of these are up to 6 % slower.  No simple rule separates them from
 * similar layers that are up to 13 % faster.  Other processors have not been
 * measured; they have oneDNN's kernels.
 *
 * An output is a sum in f32 over the inputs in their order, rounded once: it is
 * within 2^-8 of itself, and as many times 2^-24 of the sum of sizes as there
 * are inputs (tests/test_amx_pixels.c).  Tiles add up 32 inputs before these
 * meet the sum so far: where inputs are a multiple of 32, results have the bits
 * of oneDNN's, and ResNet-50 trains to the same weights.
 */
#include "config.h"

#include "amx_pixels.h"
#include "amx_tile.h"
#include "amx_weight.h"
#include "base/error.h"
#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"

enum {
    PANEL = DDP__AMX_PANEL,
    TILE = 16,        /* pixels of a tile */
    ROWS = 2 * TILE,  /* of a product */
    WIDE = 2 * PANEL, /* outputs of a product */
    MOST_STEP = 32,   /* inputs of a tile */
    LEAST_STEP = 16,
    LEAST_PIXELS = 7 * 7,
    FEW_WEIGHTS = 16 << 10, /* they stay in L1 */
    AHEAD = 6 << 10         /* bytes of x that are on their way */
};

/* Inputs of a step: all tiles have as many, so that none needs a shape of its
 * own, and no pixel's product reads its neighbour's values. */
static int step_of(int c)
{
    int steps = (c + MOST_STEP - 1) / MOST_STEP;

    while (c % (2 * steps) && 2 * steps < c)
        steps++;
    return c % (2 * steps) ? 0 : c / steps;
}

static bool can_run(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_BF16 && k->kh == 1 && k->kw == 1 &&
           k->sh == 1 && k->sw == 1 && k->groups == 1 && k->top == 0 &&
           k->left == 0 && k->bottom == 0 && k->right == 0 &&
           k->act == DDP_IDENTITY && !s->sum && step_of(s->c) > 0 &&
           ddp__unit_v16(true) && ddp__amx_here();
}

bool ddp__amx_pixels_fits(const struct ddp__conv_shape *s)
{
    return can_run(s) && step_of(s->c) >= LEAST_STEP &&
           s->oh * s->ow >= LEAST_PIXELS;
}

#ifdef DDP__AMX

#define AMX_ISA                                                                \
    target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,"                \
           "amx-tile,amx-bf16")
#define AMX __attribute__((AMX_ISA))
#define AMX_INLINE static inline __attribute__((always_inline, AMX_ISA))

/* Some pixels are computed in `room` and copied: whose lines are not whole, and
 * the last ones, fewer than a product has, whose inputs are copied, too. */
struct run {
    const uint16_t *x, *w;
    const float *bias;
    uint16_t *y, *room;
    float *sum; /* of a product [ROWS][WIDE] */
    size_t count, c, o, step;
    size_t block;     /* pixels that meet a panel while it is in L1 */
    bool whole, past; /* y: has whole lines; passes the caches */
    const char *next; /* what is fetched */
    size_t lines;     /* of it, with a step */
};

/* The next lines of x, or memory behind it, which is harmless. */
AMX_INLINE void fetch(struct run *u)
{
    for (size_t i = 0; i < u->lines; i++, u->next += 64)
        _mm_prefetch(u->next, _MM_HINT_T0);
}

/* 32 pixels times one or two panels. */
AMX_INLINE void multiply(struct run *u, const uint16_t *x, const uint16_t *w,
                         bool two)
{
    const size_t pixel = u->c * sizeof(*x), line = 64,
                 row = WIDE * sizeof(*u->sum);
    const uint16_t *x1 = x + TILE * u->c, *w1 = w + u->c * PANEL;
    float *sum1 = u->sum + TILE * WIDE;

    DDP__AMX_BARRIER();
    _tile_zero(0);
    _tile_zero(1);
    if (two) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t i = 0; i < u->c; i += u->step) {
        fetch(u);
        _tile_loadd(4, x + i, pixel);
        _tile_loadd(6, w + i * PANEL, line);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, x1 + i, pixel);
        _tile_dpbf16ps(1, 5, 6);
        if (two) {
            _tile_loadd(7, w1 + i * PANEL, line);
            _tile_dpbf16ps(2, 4, 7);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, u->sum, row);
    if (two)
        _tile_stored(2, u->sum + PANEL, row);
    _tile_stored(1, sum1, row);
    if (two)
        _tile_stored(3, sum1 + PANEL, row);
    DDP__AMX_BARRIER();
}

/* The sums, rounded, to their places. */
AMX_INLINE void put(const struct run *u, size_t at, struct ddp__unit k,
                    uint16_t *to)
{
    v16 b0 = _mm512_setzero_ps(), b1 = b0;

    if (u->bias) {
        b0 = _mm512_loadu_ps(u->bias + at);
        if (k.mask >> 16)
            b1 = _mm512_loadu_ps(u->bias + at + PANEL);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++, to += u->o) {
        const float *sum = u->sum + i * WIDE;
        v16 lo = _mm512_load_ps(sum), hi = _mm512_load_ps(sum + PANEL);

        if (u->bias) {
            lo = _mm512_add_ps(lo, b0);
            hi = _mm512_add_ps(hi, b1);
        }
        ddp__unit_put_bf16(to, (__m512i)_mm512_cvtne2ps_pbh(hi, lo), k);
    }
}

/* Outputs from `at` on, of 32 pixels. */
AMX static void run_product(struct run *u, const uint16_t *x, size_t at,
                            bool stream, uint16_t *y)
{
    size_t left = u->o - at;
    const uint16_t *w = u->w + at * u->c;
    const struct ddp__unit all = {.b = true, .whole = true, .mask = 0xffffffff};
    const struct ddp__unit past = {
        .b = true, .whole = true, .stream = true, .mask = 0xffffffff};

    if (left >= WIDE) {
        multiply(u, x, w, true);
        if (stream)
            put(u, at, past, y + at);
        else
            put(u, at, all, y + at);
        return;
    }
    multiply(u, x, w, left > PANEL);
    put(u, at, (struct ddp__unit){.b = true, .mask = (1u << left) - 1}, y + at);
}

/* `to` begins with a line, for blocks have whole lines. */
AMX_INLINE void copy_past(uint16_t *to, const uint16_t *from, size_t len)
{
    size_t i = 0;

    for (; i + 32 <= len; i += 32)
        _mm512_stream_si512((void *)(to + i), _mm512_load_si512(from + i));
    memcpy(to + i, from + i, (len - i) * sizeof(*to));
}

/* Fewer than 32 pixels, or a multiple. */
AMX static void run_block(struct run *u, size_t row, size_t rows)
{
    const uint16_t *x = u->x + row * u->c;
    uint16_t *y = u->y + row * u->o, *to = u->whole || !u->past ? y : u->room;
    bool stream = u->whole && u->past;

    if (rows < ROWS) {
        to = u->room;
        stream = false;
        memcpy(to + ROWS * u->o, x, rows * u->c * sizeof(*x));
        x = to + ROWS * u->o;
    }
    for (size_t at = 0; at < u->o; at += WIDE)
        for (size_t i = 0; i < rows; i += ROWS)
            run_product(u, x + i * u->c, at, stream, to + i * u->o);
    if (to == u->room && u->past)
        copy_past(y, to, rows * u->o);
    else if (to == u->room)
        memcpy(y, to, rows * u->o * sizeof(*y));
}

AMX static void configure(const struct run *u)
{
    struct ddp__amx_tiles t = ddp__amx_tiles();

    for (int i = 4; i < 6; i++)
        t.bytes[i] = (uint16_t)(u->step * sizeof(*u->x));
    for (int i = 6; i < 8; i++)
        t.rows[i] = (uint8_t)(u->step / 2);
    ddp__amx_configure(&t);
}

AMX static void release(void)
{
    _tile_release();
}

static void run_all(struct run *u)
{
    size_t rows;

    configure(u);
    for (size_t row = 0; row < u->count; row += rows) {
        size_t left = u->count - row;

        rows = left < u->block ? left : u->block;
        if (rows > ROWS)
            rows -= rows % ROWS;
        run_block(u, row, rows);
    }
    release();
    if (u->past)
        ddp__store_end();
}

int ddp__amx_pixels_run(const struct ddp__conv_shape *s, const uint16_t *x,
                        const void *packed, uint16_t *y)
{
    struct run u = {.x = x,
                    .w = packed,
                    .y = y,
                    .count = (size_t)s->n * (size_t)s->oh * (size_t)s->ow,
                    .c = (size_t)s->c,
                    .o = (size_t)s->o,
                    .step = (size_t)step_of(s->c),
                    .block = ROWS,
                    .next = (const char *)x + AHEAD};
    size_t sum = ROWS * WIDE * sizeof(float), room;
    char *scratch;

    if (u.c * u.o > FEW_WEIGHTS)
        u.block = 2 * ROWS;
    u.past = ddp__streams(u.count * u.o, true) && (uintptr_t)y % 64 == 0;
    u.whole = u.o % WIDE == 0;
    u.lines = ddp__divide_up(u.step, ddp__divide_up(u.o, WIDE));
    if (s->conv.bias)
        u.bias = ddp__amx_weight_bias(s, packed);
    room = u.block * u.o + ROWS * u.c;
    if (!(scratch = ddp__scratch(sum + room * sizeof(*u.room))))
        return DDP_ENOMEM;
    u.sum = (float *)(void *)scratch;
    u.room = (uint16_t *)(void *)(scratch + sum);
    run_all(&u);
    return 0;
}

#endif
