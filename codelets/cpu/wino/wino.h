/* wino.h - convolutions of stride 1 by Winograd's and Toom and Cook's products
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Filters of 3x3: by F(4x4, 3x3) an output tile of 4x4 pixels needs 36 products
 * per pair of channels instead of 144 (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", 2015):
 *
 *     y = A' (U . V) A,   U = G w G',   V = B' x B
 *     dw = G' (sum over tiles of V . Z) G,   Z = A dy A'
 *
 * Each of the 36 positions is a matrix product over channels (or tiles).  The
 * data gradient is a forward pass over dy with the filters turned round.
 * Needs AVX-512, or for f32 AVX2 and FMA.
 *
 * Filters of one row or column in f32: 1x7 and 7x1 by F(3, 7), 9 products for 3
 * pixels instead of 21; 1x3 and 3x1 by F(4, 3), 6 for 4 instead of 12.  The
 * same with G, B and A on one side.
 *
 * Errors of f32 relative to f64, of 64 channels and evenly spread values: a
 * plain sum in f32 3.8e-7 (seven taps) and 2.6e-7 (three); F(4x4, 3x3) 6.8e-7,
 * F(3, 7) 1.1e-6, F(4, 3) 3.5e-7; gradients of weights 4.6e-7, 9e-7 and 3e-7.
 * They grow with the root of the channels, as those of sums do.  DDP_WINOGRAD=0
 * turns all of them off.
 *
 * bf16 is read and written where there is no AMX, but V, U and Z are rounded to
 * 16-bit integers (i16_round.h), of which AVX512_VNNI multiplies twice as many
 * as floats.  To round them to bf16 instead would be as fast, for errors of
 * 1.2e-2 of the norm.  With integers those of results are 1.7e-3 (48 channels)
 * to 2.4e-3 (512), of which rounding the result is 1.7e-3; a direct convolution
 * with weights in bf16 loses 2.3e-3 to 2.4e-3.  Those of gradients of weights
 * are 1e-4 to 2e-4 (tests/test_wino.c).
 *
 * One Zen 5 core (avx512_bf16), milliseconds of processor time of a step, under
 * load, where V and U are multiplied as f32, and as integers: resnet9 at 32
 * pixels, twice 64 images, 435 and 345; ResNet-18 at 224, twice 16 images, 785
 * and 683.  oneDNN 2.6's direct convolutions take 1.7 and 1.3 times as long as
 * products in f32.
 */
#ifndef DDP_WINO_H
#define DDP_WINO_H

#include "cpu/conv/shape.h"
#include "cpu/vector/v16.h"

enum {
    DDP__WINO_IN = 6,      /* of 3x3: pixels of a tile's input, and */
    DDP__WINO_POS = 36,    /* products of matrices; others have fewer */
    DDP__WINO_VECTOR = 16, /* channels are multiples of it */
};

/* Images in tiles: what the transforms walk over. */
struct ddp__wino_map {
    const struct ddp__wino_kind *kind;
    int h, w, top, left; /* of the input; zero padding */
    int oh, ow;
    int across, down; /* tiles of an image */
    size_t c, o;
    bool b; /* x, y and their gradients are bf16 */
};

struct ddp__wino_map ddp__wino_map(const struct ddp__conv_shape *s);

size_t ddp__wino_packed_size(const struct ddp__conv_shape *s);

/* Weights w of a forward pass are packed in parts.  by: factors of w's filters,
 * or NULL.  turn: w is that of the layer whose data gradient s is, which has no
 * factors. */
int ddp__wino_parts(const struct ddp__conv_shape *s);
int ddp__wino_pack(const struct ddp__conv_shape *s, const float *w,
                   const float *by, bool turn, int part, void *packed);

/* y (+)= w * x of a forward pass (or, with turned weights, of a data gradient
 * described as one). */
int ddp__wino_run(const struct ddp__conv_shape *s, const void *x,
                  const float *packed, const float *bias, void *y);

/* dw of the layer. */
int ddp__wino_bwd_w(const struct ddp__conv_shape *s, const void *x,
                    const void *dy, bool accumulate, float *dw);

#endif
