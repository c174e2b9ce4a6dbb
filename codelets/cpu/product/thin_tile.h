/* thin_tile.h - products of few channels by many, over pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_THIN_TILE_H
#define DDP_CPU_THIN_TILE_H

#include <stddef.h>

enum { DDP__THIN_COLS = 48 };

/* Memory that is fetched meanwhile: `ahead` bytes in each step. */
struct ddp__thin_next {
    const char *at;
    size_t ahead;
};

/* sum[i][j] += sum over pixels of thin[i] wide[j] */
struct ddp__thin_tile {
    size_t pixels;
    const float *thin, *wide;      /* of the first pixel */
    size_t thin_pitch, wide_pitch; /* from pixel to pixel */
    size_t rows, cols;             /* 8 or 9, and up to DDP__THIN_COLS */
    float *sum;                    /* of whole vectors */
    size_t ld;
    struct ddp__thin_next next[2];
};

/* next[] moves on.  Needs AVX-512. */
void ddp__thin_tile(struct ddp__thin_tile *t);

#endif
