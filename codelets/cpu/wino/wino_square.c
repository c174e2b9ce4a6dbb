/* wino_square.c - the transforms of Winograd's F(4x4, 3x3), 16 channels at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core under load, 16 images, milliseconds into and out of Winograd's
 * domain, and of the whole forward pass: 56x56x64 0.48, 0.50, 6.4; 28x28x128
 * 0.26, 0.24, 4.6; 14x14x256 0.17, 0.15, 5.5 (wino.c has oneDNN's).
 */
#include "config.h"

#include "wino.h"

#ifdef DDP__X86
#include "cpu/product/gemm_t.h"
#include "cpu/vector/vec16.h"
#include "wino_square.h"
#include "wino_weight.h"

#include "wino_square_loops.h"

DDP__V16 static void input_tile_bf16(const void *const *p, size_t len,
                                     bool padded, size_t step, float *v)
{
    input_tile(p, len, padded, true, step, v);
}

DDP__V16 static void spread_tile_bf16(const void *const *p, size_t len,
                                      size_t step, float *z)
{
    spread_tile(p, len, true, step, z);
}

DDP__V16 static void output_tile_bf16(const float *p, size_t step, size_t len,
                                      const struct ddp__wino_target *to)
{
    output_tile(GENERAL, p, step, len, to, true);
}

#define KIND(type, b_)                                                         \
    {                                                                          \
        .kh = 3, .kw = 3, .b = b_, .high = TILE, .wide = TILE, .pos = IN * IN, \
        .input = input_tile_##type, .spread = spread_tile_##type,              \
        .output = output_tile_##type, .weigh = ddp__wino_weigh_square,         \
        .gradient = ddp__wino_gradient_square,                                 \
        .products = &ddp__wino_products_v16                                    \
    }

const struct ddp__wino_kind ddp__wino_square[2] = {KIND(f32, false),
                                                   KIND(bf16, true)};

#endif
