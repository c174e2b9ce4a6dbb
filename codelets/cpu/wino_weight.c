/* wino_weight.c - Winograd's F(4x4, 3x3): filters, and their gradient
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core under load, milliseconds for filters and for their gradient:
 * 128 x 128 0.04, 0.04; 256 x 256 0.13, 0.14; 512 x 512 0.98, 1.34.  Stored by
 * way of the caches the latter's filters took 1.9 instead of 1.35; number by
 * number, packing was 5 instead of 2 % of a step of resnet9.
 */
#include "config.h"

#include <string.h>

#include "store.h"
#include "wino.h"
#include "wino_weight.h"

#ifdef DDP__WINO
#include "turn16.h"
#include "wino_unit.h"

/* Bytes of a layer's filters that its first group of tiles may still find in
 * the third-level cache. */
enum { IN = DDP__WINO_IN, MOST_CACHED = 16 << 20 };

/* What divides the rows of G for 0, P and Q. */
#define OF_0 (P2 * Q2)
#define OF_P (2 * P2 * (P2 - Q2))
#define OF_Q (2 * Q2 * (Q2 - P2))

/* u = G w */
DDP__WINO_INLINE void weight3(const v16 w[3], v16 u[6])
{
    v16 p = FMA(SET(1 / OF_P), w[0], MUL(SET(P2 / OF_P), w[2]));
    v16 r = FMA(SET(1 / OF_Q), w[0], MUL(SET(Q2 / OF_Q), w[2]));

    u[0] = MUL(SET(1 / OF_0), w[0]);
    u[1] = FMA(SET(P / OF_P), w[1], p);
    u[2] = FNMA(SET(P / OF_P), w[1], p);
    u[3] = FMA(SET(Q / OF_Q), w[1], r);
    u[4] = FNMA(SET(Q / OF_Q), w[1], r);
    u[5] = w[2];
}

/* w = G' u */
DDP__WINO_INLINE void gradient6(const v16 u[6], v16 w[3])
{
    v16 p = ADD(u[1], u[2]), q = SUB(u[1], u[2]);
    v16 r = ADD(u[3], u[4]), s = SUB(u[3], u[4]);

    w[0] =
        FMA(SET(1 / OF_0), u[0], FMA(SET(1 / OF_P), p, MUL(SET(1 / OF_Q), r)));
    w[1] = FMA(SET(P / OF_P), q, MUL(SET(Q / OF_Q), s));
    w[2] = FMA(SET(P2 / OF_P), p, FMA(SET(Q2 / OF_Q), r, u[5]));
}

/* ---- filters ------------------------------------------------------------ */

/* u[36], step apart, of the nine vectors w; past (a constant) the caches */
DDP__WINO_INLINE void weight_tile(const v16 w[9], bool past, size_t step,
                                  float *u)
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
        for (int j = 0; j < IN; j++) {
            float *to = u + (size_t)(i * IN + j) * step;

            if (past)
                _mm512_stream_ps(to, r[j]);
            else
                STORE(to, r[j]);
        }
    }
}

/* Filters of a layer, as rows and columns of matrices: see wino_weight.h. */
struct filters {
    const float *w;
    size_t rows, c; /* c: of the layer */
    bool turn;
};

/* The taps of 16 columns from `column` on, in 16 rows: vectors over columns.
 * Those of the next rows are fetched: they are in many places. */
DDP__WINO_INLINE void load_taps(const struct filters *f, size_t row,
                                size_t column, v16 tap[16][9])
{
    for (size_t k = 0; k < 9; k++) {
        __m512i in[16], out[16];

#pragma GCC unroll 16
        for (size_t i = 0; i < 16; i++) {
            size_t filter = (f->turn ? row : column) + i;
            size_t channel = f->turn ? column : row;

            const float *p = f->w + (filter * 9 + k) * f->c + channel;

            in[i] = _mm512_loadu_si512(p);
            _mm_prefetch((const void *)(p + (f->turn ? 16 * 9 * f->c : 16)),
                         _MM_HINT_T0);
        }
        if (f->turn)
            memcpy(out, in, sizeof(in));
        else
            ddp__turn16(in, out);
        for (size_t i = 0; i < 16; i++)
            tap[i][f->turn ? 8 - k : k] = _mm512_castsi512_ps(out[i]);
    }
}

size_t ddp__wino_panel(size_t columns, size_t first)
{
    return columns - first < DDP__WINO_PANEL ? DDP__WINO_VECTOR
                                             : DDP__WINO_PANEL;
}

/* Of 16 columns. */
DDP__WINO static void weigh_columns(const struct filters *f, size_t column,
                                    size_t width, size_t step, float *u)
{
    bool past = step * IN * IN * sizeof(*u) > MOST_CACHED;
    v16 tap[16][9];

    for (size_t row = 0; row < f->rows; row += 16) {
        load_taps(f, row, column, tap);
        for (size_t i = 0; i < 16; i++)
            if (past)
                weight_tile(tap[i], true, step, u + (row + i) * width);
            else
                weight_tile(tap[i], false, step, u + (row + i) * width);
    }
}

void ddp__wino_weights(const float *w, size_t o, size_t c, size_t first,
                       bool turn, size_t step, float *u)
{
    size_t width = ddp__wino_panel(turn ? c : o, first);
    struct filters f = {w, turn ? o : c, c, turn};

    for (size_t j = 0; j < width; j += 16)
        weigh_columns(&f, first + j, width, step, u + j);
    ddp__store_end();
}

/* ---- filters as integers ------------------------------------------------ */

/* To transform filters twice takes less time than to read the transformed ones
 * again, which are four times as large.  Integers go past the caches: lines at
 * 36 positions would be read first, to be overwritten.  One Zen 5 core under
 * load, milliseconds of processor time of the filters of resnet9, for both
 * directions, from transformed floats, and in this way: 29 and 13. */

/* Sums of squares, times factor^2, of 16 columns at each position. */
DDP__WINO static void sum_columns(const struct filters *f, size_t column,
                                  const float *factor, float *sum)
{
    v16 tap[16][9];
    float u[IN * IN * 16];

    memset(sum, 0, sizeof(u));
    for (size_t row = 0; row < f->rows; row += 16) {
        load_taps(f, row, column, tap);
        for (size_t i = 0; i < 16; i++) {
            weight_tile(tap[i], false, 16, u);
            for (size_t k = 0; k < sizeof(u) / sizeof(*u); k += 16) {
                v16 x = MUL(LOAD(u + k), LOAD(factor + k));

                STORE(sum + k, FMA(x, x, LOAD(sum + k)));
            }
        }
    }
}

/* What 16 columns are multiplied by at each position. */
DDP__WINO static void find_factors(const struct filters *f, size_t column,
                                   float *factor)
{
    float sum[IN * IN * 16];
    size_t len = sizeof(sum) / sizeof(*sum);
    __mmask16 again = 0;

    for (size_t k = 0; k < len; k += 16)
        STORE(factor + k, SET(1));
    sum_columns(f, column, factor, sum);
    for (size_t k = 0; k < len; k += 16) {
        v16 by;

        again |= ddp__wino_out_of_range(LOAD(sum + k), &by);
        STORE(factor + k, by);
    }
    if (again)
        sum_columns(f, column, factor, sum);
    for (size_t k = 0; k < len; k += 16)
        STORE(factor + k,
              ddp__wino_factor(_mm512_div_ps(_mm512_sqrt_ps(LOAD(sum + k)),
                                             LOAD(factor + k))));
}

DDP__WINO static void round_columns(const struct filters *f, size_t column,
                                    size_t width, size_t step,
                                    const float *factor, uint32_t *q)
{
    v16 tap[16][9];
    float u[2][IN * IN * 16];

    for (size_t row = 0; row < f->rows; row += 16) {
        load_taps(f, row, column, tap);
        for (size_t i = 0; i < 16; i += 2, q += width) {
            weight_tile(tap[i], false, 16, u[0]);
            weight_tile(tap[i + 1], false, 16, u[1]);
            for (size_t k = 0; k < IN * IN; k++)
                _mm512_stream_si512((void *)(q + k * step),
                                    ddp__wino_pair(LOAD(u[0] + 16 * k),
                                                   LOAD(u[1] + 16 * k),
                                                   LOAD(factor + 16 * k)));
        }
    }
}

DDP__WINO void ddp__wino_weights_i16(const float *w, size_t o, size_t c,
                                     size_t first, bool turn, uint32_t *q,
                                     float *unit)
{
    size_t columns = turn ? c : o, width = ddp__wino_panel(columns, first);
    struct filters f = {w, turn ? o : c, c, turn};
    float factor[IN * IN * 16];

    for (size_t j = 0; j < width; j += 16) {
        find_factors(&f, first + j, factor);
        round_columns(&f, first + j, width, f.rows / 2 * columns, factor,
                      q + first * f.rows / 2 + j);
        for (size_t k = 0; k < IN * IN; k++)
            STORE(unit + k * columns + first + j,
                  ddp__wino_unit(LOAD(factor + 16 * k)));
    }
    ddp__store_end();
}

/* One filter's dw = G' u G, for 16 channels at a time. */
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
