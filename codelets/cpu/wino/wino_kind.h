/* wino_kind.h - the kinds of filters that Winograd's convolutions have
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_KIND_H
#define DDP_CPU_WINO_KIND_H

#include "cpu/product/gemm.h"
#include "wino.h"

/* Filters of a layer, as rows and columns of matrices: see wino_weight.h. */
struct ddp__wino_filters {
    const float *w;
    const float *by; /* a factor for each filter; NULL: 1.  Not if turned */
    size_t rows, c;  /* c: of the layer */
    bool turn;
};

/* Where a tile's outputs go: rows x cols of them are inside the image, whose
 * pixels are `pixel` values apart and its rows `pitch`. */
struct ddp__wino_target {
    void *y;
    size_t pixel, pitch;
    int rows, cols;
    const float *bias; /* or NULL */
    bool sum, past;    /* past: f32 goes past the caches */
    enum ddp_act act;
};

/* Sizes, and the transforms of len channels of one tile or filter, whose
 * positions are step apart: see wino_tile.h and wino_weight.h. */
struct ddp__wino_kind {
    int kh, kw;
    bool b;         /* bf16 */
    int high, wide; /* output pixels of a tile; kh - 1, kw - 1 more see it */
    int pos;
    void (*input)(const void *const *p, size_t len, bool padded, size_t step,
                  float *v);
    void (*spread)(const void *const *p, size_t len, size_t step, float *z);
    void (*output)(const float *p, size_t step, size_t len,
                   const struct ddp__wino_target *to);
    /* 16 columns, in rows of `width` */
    void (*weigh)(const struct ddp__wino_filters *f, size_t column,
                  size_t width, size_t step, float *u);
    void (*gradient)(const float *u, size_t step, size_t len, size_t c,
                     bool accumulate, float *dw);
    const struct ddp__gemm_products *products;
};

/* That of a layer on this processor; NULL: none. */
const struct ddp__wino_kind *ddp__wino_kind_of(const struct ddp__conv_shape *s);

/* Whether its filters are of one row or column. */
bool ddp__wino_is_line(const struct ddp__conv_shape *s);

/* Tiles that cover `size` pixels. */
int ddp__wino_tiles(int size, int tile);

/* DDP_WINOGRAD=0: convolutions are computed directly, to within PyTorch's f32
 * errors instead of 2 to 3 times as much. */
bool ddp__wino_off(void);

/* Whether this is worthwhile, here. */
bool ddp__wino_fits(const struct ddp__conv_shape *s);

#endif
