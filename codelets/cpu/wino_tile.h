/* wino_tile.h - tiles of images to and from Winograd's domain
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_TILE_H
#define DDP_CPU_WINO_TILE_H

#include "wino.h"

/* What lies outside the image, whichever channel is asked for: pointers to it
 * do not move with channels.  Only padded tiles have them. */
extern const float ddp__wino_no_pixel[16];

/* V (or Z) of `count` tiles from tile `first` on: v[pos][tile][ld]. */
void ddp__wino_input(const struct ddp__wino_map *m, const void *x, size_t first,
                     size_t count, size_t ld, float *v);
void ddp__wino_spread(const struct ddp__wino_map *m, const void *dy,
                      size_t first, size_t count, size_t ld, float *z);

/* y of these tiles from u.v in p[pos][tile][ld], with bias (or NULL), what y
 * was if `sum`, and act, of those that ddp__wino_has(). */
bool ddp__wino_has(enum ddp_act act);
void ddp__wino_output(const struct ddp__wino_map *m, const float *p,
                      size_t first, size_t count, size_t ld, const float *bias,
                      bool sum, enum ddp_act act, void *y);

#endif
