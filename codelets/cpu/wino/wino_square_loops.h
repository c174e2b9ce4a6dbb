/* wino_square_loops.h - tiles through Winograd's F(4x4, 3x3), by vectors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * wino_square.c and wino_square_v8.c compile these loops for their vectors.
 */
#include "wino_f43.h"
#include "wino_value.h"

/* v = B' d B for LANES channels at a time: columns first, then rows. */
VEC_INLINE void input_tile(const void *const *p, size_t len, bool padded,
                           bool b, size_t step, float *v)
{
    for (size_t c = 0; c < len; c += LANES) {
        vec t[IN][IN];

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            vec d[IN], r[IN];

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
            vec r[IN];

            input6(t[i], r);
#pragma GCC unroll 6
            for (int j = 0; j < IN; j++)
                STORE(v + (size_t)(i * IN + j) * step + c, r[j]);
        }
    }
}

/* An instance for tiles within the image. */
VEC static void input_tile_f32(const void *const *p, size_t len, bool padded,
                               size_t step, float *v)
{
    if (padded)
        input_tile(p, len, true, false, step, v);
    else
        input_tile(p, len, false, false, step, v);
}

/* z = A e A', as input_tile(). */
VEC_INLINE void spread_tile(const void *const *p, size_t len, bool b,
                            size_t step, float *z)
{
    for (size_t c = 0; c < len; c += LANES) {
        vec t[IN][TILE];

#pragma GCC unroll 4
        for (int j = 0; j < TILE; j++) {
            vec e[TILE], r[IN];

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
            vec r[IN];

            spread4(t[i], r);
#pragma GCC unroll 6
            for (int j = 0; j < IN; j++)
                STORE(z + (size_t)(i * IN + j) * step + c, r[j]);
        }
    }
}

VEC static void spread_tile_f32(const void *const *p, size_t len, size_t step,
                                float *z)
{
    spread_tile(p, len, false, step, z);
}

/* What a tile's outputs become (a constant): in general, or those of a tile
 * within the image are cut off below and above, and stored, past the caches. */
enum ending { GENERAL, CUT, CUT_PAST };

VEC_INLINE void end_pixel(enum ending ending, const struct ddp__wino_target *to,
                          int i, int j, size_t c, vec r, bool b)
{
    float *y = to->y;

    if (ending == GENERAL) {
        put_pixel(to, i, j, c, r, b);
        return;
    }
    y += (size_t)i * to->pitch + (size_t)j * to->pixel + c;
    r = cut_off(r, to->act);
    if (ending == CUT_PAST)
        STREAM(y, r);
    else
        STORE(y, r);
}

/* y = A' m A, as input_tile(). */
VEC_INLINE void output_tile(enum ending ending, const float *p, size_t step,
                            size_t len, const struct ddp__wino_target *to,
                            bool b)
{
    for (size_t c = 0; c < len; c += LANES) {
        vec t[TILE][IN];
        vec shift = to->bias ? LOAD(to->bias + c) : ZERO;

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            vec m[IN], r[TILE];

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
            vec r[TILE];

            output6(t[i], r);
#pragma GCC unroll 4
            for (int j = 0; j < TILE; j++)
                end_pixel(ending, to, i, j, c, ADD(r[j], shift), b);
        }
    }
}

VEC static void output_tile_f32(const float *p, size_t step, size_t len,
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
