/* pixels.h - data sets of small images, all of which are in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PIXELS_H
#define DDP_PIXELS_H

#include "data/dataset.h"

struct ddp__pixels {
    struct ddp_dataset d;
    struct ddp_image_options o;
    int side;
    uint8_t *x;     /* (count, side, side, 3); owned */
    uint8_t *label; /* owned */
};

/* An empty one, of squares; without other options, they stay as they are. */
struct ddp__pixels *ddp__pixels_new(int side,
                                    const struct ddp_image_options *o);

/* Make room for more images behind those that are there. */
int ddp__pixels_reserve(struct ddp__pixels *p, size_t more);

/* Add an image, for which there is room: its pixels, (side, side, 3), which the
 * caller fills in. */
uint8_t *ddp__pixels_add(struct ddp__pixels *p, uint8_t label);

#endif
