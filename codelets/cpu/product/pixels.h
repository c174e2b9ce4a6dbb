/* pixels.h - weights of 1x1 convolutions for products of pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * They are in panels for gemm.h, of as many columns as there are channels
 * and zeros up to a multiple of 16; the bias follows if there is one.
 */
#ifndef DDP_CPU_PIXELS_H
#define DDP_CPU_PIXELS_H

#include "cpu/conv/shape.h"
#include "cpu/isa.h"

/* Whether it is one, and this processor has the instructions for f32. */
bool ddp__pixels_fit(const struct ddp__conv_shape *s);

/* Channels with those that fill the last vector. */
size_t ddp__pixels_columns(const struct ddp__conv_shape *s);

/* Weights are packed in parts.  by: factors of channels, where the bias is
 * elsewhere, or NULL.  turn: w is that of the layer whose data gradient s is,
 * which has no factors. */
size_t ddp__pixels_packed_size(const struct ddp__conv_shape *s);
int ddp__pixels_parts(const struct ddp__conv_shape *s);
DDP__X86_ONLY void ddp__pixels_pack(const struct ddp__conv_shape *s,
                                    const float *w, const float *by, bool turn,
                                    int part, float *to);

/* Weights on their way into panels: w[o][c], or turned w[c][o], and factors of
 * channels (NULL: none). */
struct ddp__pixels_matrix {
    const float *w, *by;
    size_t c, o;
    bool turn;
};

/* One panel of `wide` columns from the first on. */
DDP__X86_ONLY void ddp__pixels_panel(const struct ddp__pixels_matrix *f,
                                     size_t first, size_t wide, float *to);

#endif
