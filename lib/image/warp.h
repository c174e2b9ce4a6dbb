/* warp.h - affine maps of a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WARP_H
#define DDP_WARP_H

#include "ddp.h"

/* Where in the source a pixel at (x, y) of the result comes from:
 * (a x + b y + c, d x + e y + f), by the centres of pixels. */
struct ddp__affine {
    double a, b, c, d, e, f;
};

/* The turn of a sample by degrees, against the clock, about its centre. */
struct ddp__affine ddp__rotation(double degrees, int size);

/* Move x (size, size, 3) right by dx and down by dy pixels, at most by size;
 * what comes from outside of it is `fill`. */
void ddp__shift(int dx, int dy, const uint8_t fill[3], int size, uint8_t *x);

/* Entries of memory that a map needs. */
size_t ddp__warp_room(int size);

/* Map x (size, size, 3); what comes from outside of it is `fill`.  DDP_BICUBIC
 * is bicubic, any other filter bilinear. */
void ddp__warp(const struct ddp__affine *m, enum ddp_interpolation filter,
               const uint8_t fill[3], int size, uint32_t *room, uint8_t *x);

#endif
