/* wino_square_v8.c - the transforms of Winograd's F(4x4, 3x3) with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One core of an Intel Xeon with AMX under load, limited to AVX2, milliseconds
 * of forward and both gradients by oneDNN 2.6, weights changed before, and in
 * Winograd's way:
 *
 *     224x224, 64 to 64, 4 images        162 170 325    50 49 51
 *     112x112, 128 to 128, 4 images      160 165 395    47 48 49
 *     56x56, 256 to 256, 4 images        152 148 331    44 46 50
 *     28x28, 512 to 512, 4 images        145 154 237    47 49 58
 *     14x14, 512 to 512, 4 images         34  36  44    19 20 24
 *     56x56, 64 to 64, 16 images          31  32  41    12 12 13
 *     7x7, 512 to 512, 16 images          36  38  38    19 19 23
 *     32x32, 16 to 16, 64 images         3.4 3.5 3.3   2.1 2.7 2.1
 *
 * oneDNN's weight gradients reach 38 % of the peak without load.  Other
 * processors, whose second-level caches are smaller, have not been measured.
 */
#include "config.h"

#include "wino.h"

#ifdef DDP__X86
#include "cpu/product/gemm_v8.h"
#include "cpu/vector/vec8.h"
#include "wino_square_v8.h"

#include "wino_square_loops.h"
#include "wino_weight_loops.h"

/* A row of a panel is a line of memory, and a vector half of it: what goes past
 * the caches is put together first. */
VEC_INLINE void stream_lines(const vec left[9], const vec right[9], size_t step,
                             float *u)
{
    float line[IN * IN][2 * LANES];

    weight_tile(left, false, 2 * LANES, line[0]);
    weight_tile(right, false, 2 * LANES, line[0] + LANES);
    for (size_t k = 0; k < IN * IN; k++, u += step) {
        STREAM(u, LOAD(line[k]));
        STREAM(u + LANES, LOAD(line[k] + LANES));
    }
}

VEC static void weigh(const struct ddp__wino_filters *f, size_t column,
                      size_t width, size_t step, float *u)
{
    bool past = step * IN * IN * sizeof(*u) > MOST_CACHED;
    vec left[LANES][9], right[LANES][9];

    for (size_t row = 0; row < f->rows; row += LANES) {
        load_taps(f, row, column, 9, left[0]);
        load_taps(f, row, column + LANES, 9, right[0]);
        for (size_t i = 0; i < LANES; i++, u += width)
            if (past) {
                stream_lines(left[i], right[i], step, u);
            } else {
                weight_tile(left[i], false, step, u);
                weight_tile(right[i], false, step, u + LANES);
            }
    }
}

VEC static void gradient(const float *u, size_t step, size_t len, size_t c,
                         bool accumulate, float *dw)
{
    gradient_filter(u, step, len, c, accumulate, dw);
}

const struct ddp__wino_kind ddp__wino_square_v8 = {
    .kh = 3,
    .kw = 3,
    .high = TILE,
    .wide = TILE,
    .pos = IN * IN,
    .input = input_tile_f32,
    .spread = spread_tile_f32,
    .output = output_tile_f32,
    .weigh = weigh,
    .gradient = gradient,
    .products = &ddp__wino_products_v8,
};

#endif
