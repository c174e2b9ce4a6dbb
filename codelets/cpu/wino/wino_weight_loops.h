/* wino_weight_loops.h - filters through Winograd's F(4x4, 3x3), by vectors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * wino_weight.c and wino_square_v8.c compile these loops for their vectors.
 */
#include "wino_f43.h"
#include "wino_taps.h"

/* u[36], step apart, of the nine vectors w; past (a constant) the caches */
VEC_INLINE void weight_tile(const vec w[9], bool past, size_t step, float *u)
{
    vec t[IN][3];

#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
        vec r[IN];

        weight3((const vec[]){w[j], w[3 + j], w[6 + j]}, r);
#pragma GCC unroll 6
        for (int i = 0; i < IN; i++)
            t[i][j] = r[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < IN; i++) {
        vec r[IN];

        weight3(t[i], r);
#pragma GCC unroll 6
        for (int j = 0; j < IN; j++)
            put_weights(u + (size_t)(i * IN + j) * step, r[j], past);
    }
}

/* dw = G' u G */
VEC_INLINE void gradient_filter(const float *u, size_t step, size_t len,
                                size_t c, bool accumulate, float *dw)
{
    for (size_t l = 0; l < len; l += LANES) {
        vec t[3][IN];

#pragma GCC unroll 6
        for (int j = 0; j < IN; j++) {
            vec d[IN], r[3];

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
            vec r[3];

            gradient6(t[i], r);
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) {
                float *to = dw + (size_t)(i * 3 + j) * c + l;

                STORE(to, accumulate ? ADD(LOAD(to), r[j]) : r[j]);
            }
        }
    }
}
