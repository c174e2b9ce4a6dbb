/* wino_tile.c - the transforms of Winograd's F(4x4, 3x3), 16 channels at once
 */
#include "config.h"

#include "cpu.h"
#include "wino.h"

#ifdef DDP__WINO
#include <immintrin.h>

typedef __m512 v16;

#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SET(c) _mm512_set1_ps(c)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)   /* a b + c */
#define FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a b */

enum { TILE = DDP__WINO_TILE, IN = DDP__WINO_IN };

/* ---- in one direction ---------------------------------------------------- */

/* t = B' d */
DDP__WINO_INLINE void input6(const v16 d[6], v16 t[6])
{
    v16 p = FNMA(SET(4), d[2], d[4]), q = FNMA(SET(4), d[1], d[3]);
    v16 r = SUB(d[4], d[2]), s = SUB(d[3], d[1]);

    t[0] = FMA(SET(4), d[0], FNMA(SET(5), d[2], d[4]));
    t[1] = ADD(p, q);
    t[2] = SUB(p, q);
    t[3] = FMA(SET(2), s, r);
    t[4] = FNMA(SET(2), s, r);
    t[5] = FMA(SET(4), d[1], FNMA(SET(5), d[3], d[5]));
}

/* y = A' m */
DDP__WINO_INLINE void output6(const v16 m[6], v16 y[4])
{
    v16 p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
    v16 r = ADD(m[3], m[4]), s = SUB(m[3], m[4]);

    y[0] = ADD(ADD(m[0], p), r);
    y[1] = FMA(SET(2), s, q);
    y[2] = FMA(SET(4), r, p);
    y[3] = ADD(FMA(SET(8), s, q), m[5]);
}

/* z = A e */
DDP__WINO_INLINE void spread4(const v16 e[4], v16 z[6])
{
    v16 p = ADD(e[0], e[2]), q = ADD(e[1], e[3]);
    v16 r = FMA(SET(4), e[2], e[0]), s = FMA(SET(4), e[3], e[1]);

    z[0] = e[0];
    z[1] = ADD(p, q);
    z[2] = SUB(p, q);
    z[3] = FMA(SET(2), s, r);
    z[4] = FNMA(SET(2), s, r);
    z[5] = e[3];
}

/* u = G w */
DDP__WINO_INLINE void weight3(const v16 w[3], v16 u[6])
{
    v16 p = MUL(SET(-1.0f / 6), ADD(w[0], w[2]));
    v16 r = FMA(SET(1.0f / 24), w[0], MUL(SET(1.0f / 6), w[2]));

    u[0] = MUL(SET(0.25f), w[0]);
    u[1] = FNMA(SET(1.0f / 6), w[1], p);
    u[2] = FMA(SET(1.0f / 6), w[1], p);
    u[3] = FMA(SET(1.0f / 12), w[1], r);
    u[4] = FNMA(SET(1.0f / 12), w[1], r);
    u[5] = w[2];
}

/* w = G' u */
DDP__WINO_INLINE void gradient6(const v16 u[6], v16 w[3])
{
    v16 p = ADD(u[1], u[2]), q = SUB(u[2], u[1]);
    v16 r = ADD(u[3], u[4]), s = SUB(u[3], u[4]);

    w[0] = FMA(SET(0.25f), u[0],
               FNMA(SET(1.0f / 6), p, MUL(SET(1.0f / 24), r)));
    w[1] = FMA(SET(1.0f / 12), s, MUL(SET(1.0f / 6), q));
    w[2] = FMA(SET(1.0f / 6), SUB(r, p), u[5]);
}

/* ---- tiles -------------------------------------------------------------- */

/* Where a tile is: sample, and its first output pixel. */
struct place {
    size_t n;
    int y, x;
};

static struct place place(const struct ddp__wino_map *m, size_t tile)
{
    size_t row = tile / (size_t)m->across;

    return (struct place){.n = row / (size_t)m->down,
                          .y = (int)(row % (size_t)m->down) * TILE,
                          .x = (int)(tile % (size_t)m->across) * TILE};
}

/* Pointers to `size` x `size` pixels from (y, x) on, or to zeros outside. */
static void pixels(const float *image, int h, int w, size_t c, int y, int x,
                   int size, const float *zeros, const float **p)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            bool inside = y + i >= 0 && y + i < h && x + j >= 0 && x + j < w;

            p[i * size + j] =
                inside ? image + ((size_t)(y + i) * (size_t)w + (size_t)(x + j)) *
                                     c
                       : zeros;
        }
}

/* What lies outside the image, whichever channel is asked for. */
static const float no_pixel[16];

DDP__WINO static void input_tile(const float *const *p, size_t len,
                                 bool padded, size_t step, float *v)
{
    for (size_t c = 0; c < len; c += 16) {
        v16 t[IN][IN];

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            v16 d[IN], r[IN];

#pragma GCC unroll 6
            for (int i = 0; i < IN; i++) {
                const float *q = p[i * IN + j];

                d[i] = LOAD(padded && q == no_pixel ? q : q + c);
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

void ddp__wino_input(const struct ddp__wino_map *m, const float *x,
                     size_t first, size_t count, size_t ld, float *v)
{
    const float *p[IN * IN];

    for (size_t t = 0; t < count; t++) {
        struct place q = place(m, first + t);
        const float *image = x + q.n * (size_t)m->h * (size_t)m->w * m->c;
        int y = q.y - m->top, left = q.x - m->left;
        bool padded =
            y < 0 || left < 0 || y + IN > m->h || left + IN > m->w;

        pixels(image, m->h, m->w, m->c, y, left, IN, no_pixel, p);
        input_tile(p, m->c, padded, count * ld, v + t * ld);
    }
}

DDP__WINO static void spread_tile(const float *const *p, size_t len,
                                  size_t step, float *z)
{
    for (size_t c = 0; c < len; c += 16) {
        v16 t[IN][TILE];

#pragma GCC unroll 4
        for (int j = 0; j < TILE; j++) {
            v16 e[TILE], r[IN];

#pragma GCC unroll 4
            for (int i = 0; i < TILE; i++) {
                const float *q = p[i * TILE + j];

                e[i] = LOAD(q == no_pixel ? q : q + c);
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

void ddp__wino_spread(const struct ddp__wino_map *m, const float *dy,
                      size_t first, size_t count, size_t ld, float *z)
{
    const float *p[TILE * TILE];

    for (size_t t = 0; t < count; t++) {
        struct place q = place(m, first + t);

        pixels(dy + q.n * (size_t)m->oh * (size_t)m->ow * m->o, m->oh, m->ow,
               m->o, q.y, q.x, TILE, no_pixel, p);
        spread_tile(p, m->o, count * ld, z + t * ld);
    }
}

/* rows x cols of the tile are inside the image. */
DDP__WINO static void output_tile(const float *p, size_t step, size_t len,
                                  const float *bias, enum ddp_act act,
                                  size_t pitch, int rows, int cols, float *y)
{
    const v16 zero = _mm512_setzero_ps();

    for (size_t c = 0; c < len; c += 16) {
        v16 t[TILE][IN], b = bias ? LOAD(bias + c) : zero;

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
                v16 v = ADD(r[j], b);

                if (act != DDP_IDENTITY) /* the NaN of v, if any, stays */
                    v = _mm512_max_ps(zero, v);
                if (act == DDP_RELU6)
                    v = _mm512_min_ps(SET(6), v);
                if (i < rows && j < cols)
                    STORE(y + (size_t)i * pitch + (size_t)j * len + c, v);
            }
        }
    }
}

void ddp__wino_output(const struct ddp__wino_map *m, const float *p,
                      size_t first, size_t count, size_t ld, const float *bias,
                      enum ddp_act act, float *y)
{
    size_t pitch = (size_t)m->ow * m->o;

    for (size_t t = 0; t < count; t++) {
        struct place q = place(m, first + t);
        float *to = y + (q.n * (size_t)m->oh + (size_t)q.y) * pitch +
                    (size_t)q.x * m->o;

        output_tile(p + t * ld, count * ld, m->o, bias, act, pitch,
                    m->oh - q.y, m->ow - q.x, to);
    }
}

/* ---- weights ------------------------------------------------------------ */

/* u[36], step apart, of the nine vectors w */
DDP__WINO_INLINE void weight_tile(const v16 w[9], size_t step, float *u)
{
    v16 t[IN][3];

#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
        v16 r[IN];

        weight3((const v16[]){w[j], w[3 + j], w[6 + j]}, r);
#pragma GCC unroll 6
        for (int i = 0; i < IN; i++)
            t[i][j] = r[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < IN; i++) {
        v16 r[IN];

        weight3(t[i], r);
#pragma GCC unroll 6
        for (int j = 0; j < IN; j++)
            STORE(u + (size_t)(i * IN + j) * step, r[j]);
    }
}

/* Of filters i .. i + 15 and channels j .. j + 15: vectors over filters. */
DDP__WINO static void forward_block(const float *w, size_t o, size_t c,
                                    size_t i, size_t j, float *u)
{
    float tap[9][16][16] __attribute__((aligned(64)));

    for (size_t f = 0; f < 16; f++)
        for (size_t k = 0; k < 9; k++)
            for (size_t l = 0; l < 16; l++)
                tap[k][l][f] = w[((i + f) * 9 + k) * c + j + l];
    for (size_t l = 0; l < 16; l++) {
        v16 v[9];

        for (size_t k = 0; k < 9; k++)
            v[k] = LOAD(tap[k][l]);
        weight_tile(v, o * c,
                    u + i / 32 * 32 * c + (j + l) * 32 + i % 32);
    }
}

/* Of filter i and channels j .. j + 15: vectors over channels. */
DDP__WINO static void turned_block(const float *w, size_t o, size_t c, size_t i,
                                   size_t j, float *u)
{
    v16 v[9];

    for (size_t k = 0; k < 9; k++)
        v[8 - k] = LOAD(w + (i * 9 + k) * c + j);
    weight_tile(v, o * c, u + j / 32 * 32 * o + i * 32 + j % 32);
}

void ddp__wino_weights(const float *w, size_t o, size_t c, bool turn, float *u)
{
    for (size_t i = 0; i < o; i += turn ? 1 : 16)
        for (size_t j = 0; j < c; j += 16) {
            if (turn)
                turned_block(w, o, c, i, j, u);
            else
                forward_block(w, o, c, i, j, u);
        }
}

DDP__WINO static void gradient_row(const float *u, size_t step, size_t cols,
                                   size_t c, bool accumulate, float *dw)
{
    for (size_t l = 0; l < cols; l += 16) {
        v16 t[3][IN];

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            v16 d[IN], r[3];

#pragma GCC unroll 6
            for (int i = 0; i < IN; i++)
                d[i] = LOAD(u + (size_t)(i * IN + j) * step + l);
            gradient6(d, r);
#pragma GCC unroll 3
            for (int i = 0; i < 3; i++)
                t[i][j] = r[i];
        }
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++) {
            v16 r[3];

            gradient6(t[i], r);
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) {
                float *to = dw + (size_t)(i * 3 + j) * c + l;

                STORE(to, accumulate ? ADD(LOAD(to), r[j]) : r[j]);
            }
        }
    }
}

void ddp__wino_gradient(const float *u, size_t rows, size_t cols, size_t c,
                        bool accumulate, float *dw)
{
    for (size_t i = 0; i < rows; i++)
        gradient_row(u + i * cols, rows * cols, cols, c, accumulate,
                     dw + i * 9 * c);
}

#endif
