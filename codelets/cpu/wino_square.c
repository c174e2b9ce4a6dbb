/* wino_square.c - the transforms of Winograd's F(4x4, 3x3), 16 channels at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core under load, 16 images, milliseconds into and out of Winograd's
 * domain, and of the whole forward pass: 56x56x64 0.48, 0.50, 6.4; 28x28x128
 * 0.26, 0.24, 4.6; 14x14x256 0.17, 0.15, 5.5 (wino.c has oneDNN's).
 */
#include "config.h"

#include "wino.h"

#ifdef DDP__WINO
#include "wino_f43.h"
#include "wino_square.h"
#include "wino_value.h"
#include "wino_weight.h"

enum { TILE = 4, IN = 6 };

/* v = B' d B for 16 channels at a time: columns first, then rows. */
DDP__WINO_INLINE void input_tile(const void *const *p, size_t len, bool padded,
                                 bool b, size_t step, float *v)
{
    for (size_t c = 0; c < len; c += 16) {
        v16 t[IN][IN];

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            v16 d[IN], r[IN];

#pragma GCC unroll 6
            for (int i = 0; i < IN; i++)
                d[i] = load_pixel(p[i * IN + j], c, padded, b);
            input6(d, r);
#pragma GCC unroll 6
            for (int i = 0; i < IN; i++)
                t[i][j] = r[i];
        }
#pragma GCC unroll 6
        for (int i = 0; i < IN; i++) {
            v16 r[IN];

            input6(t[i], r);
#pragma GCC unroll 6
            for (int j = 0; j < IN; j++)
                STORE(v + (size_t)(i * IN + j) * step + c, r[j]);
        }
    }
}

/* An instance for each type, and for tiles within the image. */
DDP__WINO static void input_tile_f32(const void *const *p, size_t len,
                                     bool padded, size_t step, float *v)
{
    if (padded)
        input_tile(p, len, true, false, step, v);
    else
        input_tile(p, len, false, false, step, v);
}

DDP__WINO static void input_tile_bf16(const void *const *p, size_t len,
                                      bool padded, size_t step, float *v)
{
    input_tile(p, len, padded, true, step, v);
}

/* z = A e A', as input_tile(). */
DDP__WINO_INLINE void spread_tile(const void *const *p, size_t len, bool b,
                                  size_t step, float *z)
{
    for (size_t c = 0; c < len; c += 16) {
        v16 t[IN][TILE];

#pragma GCC unroll 4
        for (int j = 0; j < TILE; j++) {
            v16 e[TILE], r[IN];

#pragma GCC unroll 4
            for (int i = 0; i < TILE; i++)
                e[i] = load_pixel(p[i * TILE + j], c, true, b);
            spread4(e, r);
#pragma GCC unroll 6
            for (int i = 0; i < IN; i++)
                t[i][j] = r[i];
        }
#pragma GCC unroll 6
        for (int i = 0; i < IN; i++) {
            v16 r[IN];

            spread4(t[i], r);
#pragma GCC unroll 6
            for (int j = 0; j < IN; j++)
                STORE(z + (size_t)(i * IN + j) * step + c, r[j]);
        }
    }
}

DDP__WINO static void spread_tile_f32(const void *const *p, size_t len,
                                      size_t step, float *z)
{
    spread_tile(p, len, false, step, z);
}

DDP__WINO static void spread_tile_bf16(const void *const *p, size_t len,
                                       size_t step, float *z)
{
    spread_tile(p, len, true, step, z);
}

/* What a tile's outputs become (a constant): in general, or those of a tile
 * within the image are cut off below and above, and stored, past the caches. */
enum ending { GENERAL, CUT, CUT_PAST };

DDP__WINO_INLINE void end_pixel(enum ending ending,
                                const struct ddp__wino_target *to, int i, int j,
                                size_t c, v16 r, bool b)
{
    float *y = to->y;

    if (ending == GENERAL) {
        put_pixel(to, i, j, c, r, b);
        return;
    }
    y += (size_t)i * to->pitch + (size_t)j * to->pixel + c;
    r = cut_off(r, to->act);
    if (ending == CUT_PAST)
        _mm512_stream_ps(y, r);
    else
        STORE(y, r);
}

/* y = A' m A, as input_tile(). */
DDP__WINO_INLINE void output_tile(enum ending ending, const float *p,
                                  size_t step, size_t len,
                                  const struct ddp__wino_target *to, bool b)
{
    for (size_t c = 0; c < len; c += 16) {
        v16 t[TILE][IN];
        v16 shift = to->bias ? LOAD(to->bias + c) : _mm512_setzero_ps();

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            v16 m[IN], r[TILE];

#pragma GCC unroll 6
            for (int i = 0; i < IN; i++)
                m[i] = LOAD(p + (size_t)(i * IN + j) * step + c);
            output6(m, r);
#pragma GCC unroll 4
            for (int i = 0; i < TILE; i++)
                t[i][j] = r[i];
        }
#pragma GCC unroll 4
        for (int i = 0; i < TILE; i++) {
            v16 r[TILE];

            output6(t[i], r);
#pragma GCC unroll 4
            for (int j = 0; j < TILE; j++)
                end_pixel(ending, to, i, j, c, ADD(r[j], shift), b);
        }
    }
}

DDP__WINO static void output_tile_f32(const float *p, size_t step, size_t len,
                                      const struct ddp__wino_target *to)
{
    bool cut = to->rows >= TILE && to->cols >= TILE && !to->sum &&
               to->act <= DDP_RELU6;

    if (cut && to->past)
        output_tile(CUT_PAST, p, step, len, to, false);
    else if (cut)
        output_tile(CUT, p, step, len, to, false);
    else
        output_tile(GENERAL, p, step, len, to, false);
}

DDP__WINO static void output_tile_bf16(const float *p, size_t step, size_t len,
                                       const struct ddp__wino_target *to)
{
    output_tile(GENERAL, p, step, len, to, true);
}

#define KIND(type, b_)                                                         \
    {                                                                          \
        .kh = 3, .kw = 3, .b = b_, .high = TILE, .wide = TILE, .pos = IN * IN, \
        .input = input_tile_##type, .spread = spread_tile_##type,              \
        .output = output_tile_##type, .weigh = ddp__wino_weigh_square,         \
        .gradient = ddp__wino_gradient_square                                  \
    }

const struct ddp__wino_kind ddp__wino_square[2] = {KIND(f32, false),
                                                   KIND(bf16, true)};

#endif
