/* wino_tile.h - tiles of images to and from Winograd's domain
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_TILE_H
#define DDP_CPU_WINO_TILE_H

#include "wino.h"

/* What lies outside the image, whichever channel is asked for: pointers to it
 * do not move with channels.  Only padded tiles have them. */
extern const float ddp__wino_no_pixel[16];

/* `count` tiles from tile `first` on, in matrices v[pos][tile][ld] of which the
 * positions are step apart. */
struct ddp__wino_tiles {
    size_t first, count, ld, step;
};

/* V (or Z) of tiles. */
void ddp__wino_input(const struct ddp__wino_map *m, const void *x,
                     const struct ddp__wino_tiles *t, float *v);
void ddp__wino_spread(const struct ddp__wino_map *m, const void *dy,
                      const struct ddp__wino_tiles *t, float *z);

/* What products become: `columns` channels of y from the first on, with their
 * bias (or NULL), what y was if `sum`, and act, of those that ddp__wino_has().
 */
struct ddp__wino_result {
    size_t column, columns;
    const float *bias; /* of channel 0 */
    bool sum;
    bool past; /* f32: y goes past the caches */
    enum ddp_act act;
    void *y;
};

/* y of tiles from u.v in p. */
bool ddp__wino_has(enum ddp_act act);
void ddp__wino_output(const struct ddp__wino_map *m, const float *p,
                      const struct ddp__wino_tiles *t,
                      const struct ddp__wino_result *r);

#endif
