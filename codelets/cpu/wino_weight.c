/* wino_weight.c - Winograd's F(4x4, 3x3): filters, and their gradient
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "wino.h"
#include "wino_weight.h"

#ifdef DDP__WINO
#include "turn16.h"
#include "wino_v16.h"

enum { IN = DDP__WINO_IN };

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

/* Of filters i .. i + 15 and channels j .. j + 15: vectors over filters, rows
 * `width` apart. */
DDP__WINO static void forward_block(const float *w, size_t c, size_t i,
                                    size_t j, size_t width, size_t step,
                                    float *u)
{
    __m512i tap[9][16], row[16];

    for (size_t k = 0; k < 9; k++) {
#pragma GCC unroll 16
        for (size_t f = 0; f < 16; f++)
            row[f] = _mm512_loadu_si512(w + ((i + f) * 9 + k) * c + j);
        ddp__turn16(row, tap[k]);
    }
    for (size_t l = 0; l < 16; l++) {
        v16 v[9];

        for (size_t k = 0; k < 9; k++)
            v[k] = _mm512_castsi512_ps(tap[k][l]);
        weight_tile(v, step, u + l * width);
    }
}

/* Of filter i and channels j .. j + 15: vectors over channels. */
DDP__WINO static void turned_block(const float *w, size_t c, size_t i, size_t j,
                                   size_t step, float *u)
{
    v16 v[9];

    for (size_t k = 0; k < 9; k++)
        v[8 - k] = LOAD(w + (i * 9 + k) * c + j);
    weight_tile(v, step, u);
}

size_t ddp__wino_panel(size_t columns, size_t first)
{
    return columns - first < DDP__WINO_PANEL ? DDP__WINO_VECTOR
                                             : DDP__WINO_PANEL;
}

void ddp__wino_weights(const float *w, size_t o, size_t c, size_t first,
                       bool turn, size_t step, float *u)
{
    size_t width = ddp__wino_panel(turn ? c : o, first);

    for (size_t j = 0; j < width; j += 16) {
        if (turn)
            for (size_t i = 0; i < o; i++)
                turned_block(w, c, i, first + j, step, u + i * width + j);
        else
            for (size_t i = 0; i < c; i += 16)
                forward_block(w, c, first + j, i, width, step,
                              u + i * width + j);
    }
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
