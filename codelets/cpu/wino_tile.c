/* wino_tile.c - the transforms of Winograd's F(4x4, 3x3), 16 channels at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core under load, 16 images, milliseconds into and out of Winograd's
 * domain, and of the whole forward pass: 56x56x64 0.48, 0.50, 6.4; 28x28x128
 * 0.26, 0.24, 4.6; 14x14x256 0.17, 0.15, 5.5 (wino.c has oneDNN's).
 */
#include "config.h"

#include "cpu.h"
#include "vmath.h"
#include "wino.h"
#include "wino_tile.h"

#ifdef DDP__WINO
#include "wino_v16.h"

enum { TILE = DDP__WINO_TILE, IN = DDP__WINO_IN };

/* ---- values -------------------------------------------------------------- */

/* 16 of them, f32 or bf16 (b, a constant). */
DDP__WINO_INLINE v16 load_values(const void *p, bool b)
{
    if (!b)
        return LOAD(p);
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}

/* bf16 as by ddp__round_bf16(). */
DDP__WINO_INLINE void store_values(void *p, v16 v, bool b)
{
    __m512i u = _mm512_castps_si512(v), up;

    if (!b) {
        STORE(p, v);
        return;
    }
    up = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    up = _mm512_add_epi32(_mm512_add_epi32(u, up), _mm512_set1_epi32(0x7fff));
    up = _mm512_mask_or_epi32(up, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), u,
                              _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16)));
}

/* ---- in one direction ---------------------------------------------------- */

/* t = B' d */
DDP__WINO_INLINE void input6(const v16 d[6], v16 t[6])
{
    v16 p = FNMA(SET(Q2), d[2], d[4]), q = FNMA(SET(Q2), d[1], d[3]);
    v16 r = FNMA(SET(P2), d[2], d[4]), s = FNMA(SET(P2), d[1], d[3]);

    t[0] = FMA(SET(P2 * Q2), d[0], FNMA(SET(P2 + Q2), d[2], d[4]));
    t[1] = FMA(SET(P), q, p);
    t[2] = FNMA(SET(P), q, p);
    t[3] = FMA(SET(Q), s, r);
    t[4] = FNMA(SET(Q), s, r);
    t[5] = FMA(SET(P2 * Q2), d[1], FNMA(SET(P2 + Q2), d[3], d[5]));
}

/* y = A' m */
DDP__WINO_INLINE void output6(const v16 m[6], v16 y[4])
{
    v16 p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
    v16 r = ADD(m[3], m[4]), s = SUB(m[3], m[4]);

    y[0] = ADD(ADD(m[0], p), r);
    y[1] = FMA(SET(Q), s, MUL(SET(P), q));
    y[2] = FMA(SET(Q2), r, MUL(SET(P2), p));
    y[3] = FMA(SET(Q * Q2), s, FMA(SET(P * P2), q, m[5]));
}

/* z = A e */
DDP__WINO_INLINE void spread4(const v16 e[4], v16 z[6])
{
    v16 p = FMA(SET(P2), e[2], e[0]), q = FMA(SET(P2), e[3], e[1]);
    v16 r = FMA(SET(Q2), e[2], e[0]), s = FMA(SET(Q2), e[3], e[1]);

    z[0] = e[0];
    z[1] = FMA(SET(P), q, p);
    z[2] = FNMA(SET(P), q, p);
    z[3] = FMA(SET(Q), s, r);
    z[4] = FNMA(SET(Q), s, r);
    z[5] = e[3];
}

/* ---- tiles -------------------------------------------------------------- */

/* Where a tile is: sample, and its first output pixel. */
struct place {
    size_t n;
    int y, x;
};

static struct place place_of_tile(const struct ddp__wino_map *m, size_t tile)
{
    size_t row = tile / (size_t)m->across;

    return (struct place){.n = row / (size_t)m->down,
                          .y = (int)(row % (size_t)m->down) * TILE,
                          .x = (int)(tile % (size_t)m->across) * TILE};
}

/* What lies outside the image, whichever channel is asked for. */
static const float no_pixel[16];

/* Pointers to `size` x `size` pixels of `pixel` bytes from (y, x) on. */
static void pixels_of_tile(const char *image, int h, int w, size_t pixel, int y,
                           int x, int size, const void **p)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            bool inside = y + i >= 0 && y + i < h && x + j >= 0 && x + j < w;

            p[i * size + j] =
                inside
                    ? image + ((size_t)(y + i) * (size_t)w + (size_t)(x + j)) *
                                  pixel
                    : (const void *)no_pixel;
        }
}

/* v = B' d B for 16 channels at a time: columns first, then rows.  Only padded
 * tiles have pointers to no_pixel, which does not move with c. */
DDP__WINO_INLINE void input_tile(const void *const *p, size_t len, bool padded,
                                 bool b, size_t step, float *v)
{
    for (size_t c = 0; c < len; c += 16) {
        v16 t[IN][IN];

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            v16 d[IN], r[IN];

#pragma GCC unroll 6
            for (int i = 0; i < IN; i++) {
                const void *q = p[i * IN + j];

                d[i] = load_values(
                    padded && q == no_pixel ? q : ddp__at(q, c, b), b);
            }
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

/* An instance for each type. */
DDP__WINO static void input_tile_f32(const void *const *p, size_t len,
                                     bool padded, size_t step, float *v)
{
    input_tile(p, len, padded, false, step, v);
}

DDP__WINO static void input_tile_bf16(const void *const *p, size_t len,
                                      bool padded, size_t step, float *v)
{
    input_tile(p, len, padded, true, step, v);
}

void ddp__wino_input(const struct ddp__wino_map *m, const void *x, size_t first,
                     size_t count, size_t ld, float *v)
{
    const void *p[IN * IN];
    size_t pixel = m->c * (m->b ? 2 : 4);

    for (size_t t = 0; t < count; t++) {
        struct place q = place_of_tile(m, first + t);
        const char *image =
            (const char *)x + q.n * (size_t)m->h * (size_t)m->w * pixel;
        int y = q.y - m->top, left = q.x - m->left;
        bool padded = y < 0 || left < 0 || y + IN > m->h || left + IN > m->w;

        pixels_of_tile(image, m->h, m->w, pixel, y, left, IN, p);
        (m->b ? input_tile_bf16 : input_tile_f32)(p, m->c, padded, count * ld,
                                                  v + t * ld);
    }
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
            for (int i = 0; i < TILE; i++) {
                const void *q = p[i * TILE + j];

                e[i] = load_values(q == no_pixel ? q : ddp__at(q, c, b), b);
            }
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

void ddp__wino_spread(const struct ddp__wino_map *m, const void *dy,
                      size_t first, size_t count, size_t ld, float *z)
{
    const void *p[TILE * TILE];
    size_t pixel = m->o * (m->b ? 2 : 4);

    for (size_t t = 0; t < count; t++) {
        struct place q = place_of_tile(m, first + t);
        const char *image =
            (const char *)dy + q.n * (size_t)m->oh * (size_t)m->ow * pixel;

        pixels_of_tile(image, m->oh, m->ow, pixel, q.y, q.x, TILE, p);
        (m->b ? spread_tile_bf16 : spread_tile_f32)(p, m->o, count * ld,
                                                    z + t * ld);
    }
}

/* Where a tile's outputs go: rows x cols of them are inside the image, whose
 * rows are `pitch` values long. */
struct target {
    void *y;
    size_t pitch;
    int rows, cols;
};

bool ddp__wino_has(enum ddp_act act)
{
    return act <= DDP_RELU6 || act == DDP_SILU || act == DDP_HARDSWISH;
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

DDP__WINO_INLINE void output_tile(const float *p, size_t step, size_t len,
                                  const float *bias, bool sum, enum ddp_act act,
                                  const struct target *to, bool b)
{
    const v16 zero = _mm512_setzero_ps();

    for (size_t c = 0; c < len; c += 16) {
        v16 t[TILE][IN], shift = bias ? LOAD(bias + c) : zero;

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
            for (int j = 0; j < TILE; j++) {
                size_t at = (size_t)i * to->pitch + (size_t)j * len + c;
                void *y = ddp__to(to->y, at, b);
                v16 v = ADD(r[j], shift);

                if (i >= to->rows || j >= to->cols)
                    continue;
                if (sum)
                    v = ADD(v, load_values(y, b));
                if (act > DDP_RELU6)
                    v = activate(v, act);
                else if (act != DDP_IDENTITY)
                    v = _mm512_max_ps(zero, v);
                if (act == DDP_RELU6)
                    v = _mm512_min_ps(SET(6), v);
                store_values(y, v, b);
            }
        }
    }
}

DDP__WINO static void output_tile_f32(const float *p, size_t step, size_t len,
                                      const float *bias, bool sum,
                                      enum ddp_act act, const struct target *to)
{
    output_tile(p, step, len, bias, sum, act, to, false);
}

DDP__WINO static void output_tile_bf16(const float *p, size_t step, size_t len,
                                       const float *bias, bool sum,
                                       enum ddp_act act,
                                       const struct target *to)
{
    output_tile(p, step, len, bias, sum, act, to, true);
}

void ddp__wino_output(const struct ddp__wino_map *m, const float *p,
                      size_t first, size_t count, size_t ld, const float *bias,
                      bool sum, enum ddp_act act, void *y)
{
    struct target to = {.pitch = (size_t)m->ow * m->o};

    for (size_t t = 0; t < count; t++) {
        struct place q = place_of_tile(m, first + t);
        size_t at =
            (q.n * (size_t)m->oh + (size_t)q.y) * to.pitch + (size_t)q.x * m->o;

        to.y = ddp__to(y, at, m->b);
        to.rows = m->oh - q.y;
        to.cols = m->ow - q.x;
        (m->b ? output_tile_bf16 : output_tile_f32)(p + t * ld, count * ld,
                                                    m->o, bias, sum, act, &to);
    }
}

#endif
