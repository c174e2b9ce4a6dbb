/* taps_tile.h - panels of matrices, and sums of their products
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A panel has a line of `width` values for each step of a product.
 */
#ifndef DDP_CPU_TAPS_TILE_H
#define DDP_CPU_TAPS_TILE_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/isa.h"

enum { DDP__TAPS_ROWS = 14, DDP__TAPS_COLS = 32, DDP__TAPS_PIECES = 16 };

/* Panels whose product is a part of a sum. */
struct ddp__taps_piece {
    const float *a, *b;
};

/* p[i][j] (+)= bias[j] + sum over pieces and steps k of a[k][i] b[k][j], then
 * at least low and at most high. */
struct ddp__taps_tile {
    size_t rows, k, count; /* rows: up to DDP__TAPS_ROWS; count: of pieces */
    struct ddp__taps_piece piece[DDP__TAPS_PIECES];
    const float *bias; /* or NULL */
    float low, high;
    bool add, past; /* past: p goes past the caches */
    float *p;       /* in whole lines of 64 bytes where it goes past them */
    size_t ldp;
};

/* Needs AVX-512, as all here. */
DDP__X86_ONLY void ddp__taps_tile(const struct ddp__taps_tile *t);

/* A panel of `lines` lines, whose first `cols` values, DDP__TAPS_COLS at most,
 * begin at from, from + step, ... */
DDP__X86_ONLY void ddp__taps_copy(const float *from, size_t step, size_t lines,
                                  size_t cols, size_t width, float *to);

/* A panel of `lines` lines, a multiple of 16, of which value i of all lines is
 * the row from + i * step. */
DDP__X86_ONLY void ddp__taps_turn(const float *from, size_t step, size_t lines,
                                  size_t cols, size_t width, float *to);

#endif
