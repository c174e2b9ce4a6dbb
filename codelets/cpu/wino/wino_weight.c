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

#include "cpu/store.h"
#include "wino.h"
#include "wino_weight.h"

#ifdef DDP__X86
#include "cpu/product/i16_unit.h"
#include "cpu/vector/vec16.h"
#include "wino_square.h"

#include "wino_weight_loops.h"

/* ---- filters ------------------------------------------------------------ */

size_t ddp__wino_panel(const struct ddp__wino_kind *kind, size_t columns,
                       size_t first)
{
    size_t panel = kind->products->panel;

    return columns - first < panel ? DDP__WINO_VECTOR : panel;
}

DDP__V16 void ddp__wino_weigh_square(const struct ddp__wino_filters *f,
                                     size_t column, size_t width, size_t step,
                                     float *u)
{
    bool past = step * IN * IN * sizeof(*u) > MOST_CACHED;
    v16 tap[16][9];

    for (size_t row = 0; row < f->rows; row += 16) {
        load_taps(f, row, column, 9, tap[0]);
        for (size_t i = 0; i < 16; i++)
            if (past)
                weight_tile(tap[i], true, step, u + (row + i) * width);
            else
                weight_tile(tap[i], false, step, u + (row + i) * width);
    }
}

void ddp__wino_weights(const struct ddp__wino_kind *kind,
                       const struct ddp__wino_filters *f, size_t columns,
                       size_t first, size_t step, float *u)
{
    size_t width = ddp__wino_panel(kind, columns, first);

    for (size_t j = 0; j < width; j += 16)
        kind->weigh(f, first + j, width, step, u + j);
    ddp__store_end();
}

/* ---- filters as integers ------------------------------------------------ */

/* To transform filters twice takes less time than to read the transformed ones
 * again, which are four times as large.  Integers go past the caches: lines at
 * 36 positions would be read first, to be overwritten.  One Zen 5 core under
 * load, milliseconds of processor time of the filters of resnet9, for both
 * directions, from transformed floats, and in this way: 29 and 13. */

/* Sums of squares, times factor^2, of 16 columns at each position. */
DDP__V16 static void sum_columns(const struct ddp__wino_filters *f,
                                 size_t column, const float *factor, float *sum)
{
    v16 tap[16][9];
    float u[IN * IN * 16];

    memset(sum, 0, sizeof(u));
    for (size_t row = 0; row < f->rows; row += 16) {
        load_taps(f, row, column, 9, tap[0]);
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
DDP__V16 static void find_factors(const struct ddp__wino_filters *f,
                                  size_t column, float *factor)
{
    float sum[IN * IN * 16];
    size_t len = sizeof(sum) / sizeof(*sum);
    __mmask16 again = 0;

    for (size_t k = 0; k < len; k += 16)
        STORE(factor + k, SET(1));
    sum_columns(f, column, factor, sum);
    for (size_t k = 0; k < len; k += 16) {
        v16 by;

        again |= ddp__i16_out_of_range(LOAD(sum + k), &by);
        STORE(factor + k, by);
    }
    if (again)
        sum_columns(f, column, factor, sum);
    for (size_t k = 0; k < len; k += 16)
        STORE(factor + k,
              ddp__i16_factor(_mm512_div_ps(_mm512_sqrt_ps(LOAD(sum + k)),
                                            LOAD(factor + k))));
}

DDP__V16 static void round_columns(const struct ddp__wino_filters *f,
                                   size_t column, size_t width, size_t step,
                                   const float *factor, uint32_t *q)
{
    v16 tap[16][9];
    float u[2][IN * IN * 16];

    for (size_t row = 0; row < f->rows; row += 16) {
        load_taps(f, row, column, 9, tap[0]);
        for (size_t i = 0; i < 16; i += 2, q += width) {
            weight_tile(tap[i], false, 16, u[0]);
            weight_tile(tap[i + 1], false, 16, u[1]);
            for (size_t k = 0; k < IN * IN; k++)
                _mm512_stream_si512((void *)(q + k * step),
                                    ddp__i16_pair(LOAD(u[0] + 16 * k),
                                                  LOAD(u[1] + 16 * k),
                                                  LOAD(factor + 16 * k)));
        }
    }
}

DDP__V16 void ddp__wino_weights_i16(const struct ddp__wino_filters *f,
                                    size_t columns, size_t first, uint32_t *q,
                                    float *unit)
{
    size_t width = ddp__wino_panel(&ddp__wino_square[1], columns, first);
    float factor[IN * IN * 16];

    for (size_t j = 0; j < width; j += 16) {
        find_factors(f, first + j, factor);
        round_columns(f, first + j, width, f->rows / 2 * columns, factor,
                      q + first * f->rows / 2 + j);
        for (size_t k = 0; k < IN * IN; k++)
            STORE(unit + k * columns + first + j,
                  ddp__i16_unit(LOAD(factor + 16 * k)));
    }
    ddp__store_end();
}

/* ---- gradient ----------------------------------------------------------- */

DDP__V16 void ddp__wino_gradient_square(const float *u, size_t step, size_t len,
                                        size_t c, bool accumulate, float *dw)
{
    gradient_filter(u, step, len, c, accumulate, dw);
}

void ddp__wino_gradient(const struct ddp__wino_kind *kind, const float *u,
                        size_t rows, size_t cols, size_t c, bool accumulate,
                        float *dw)
{
    for (size_t i = 0; i < rows; i++)
        kind->gradient(u + i * cols, rows * cols, cols, c, accumulate,
                       dw + i * (size_t)(kind->kh * kind->kw) * c);
}

#endif
