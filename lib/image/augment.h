/* augment.h - how an image of a given size is processed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AUGMENT_H
#define DDP_AUGMENT_H

#include "ddp.h"
#include "image/colour.h"
#include "image/erase.h"
#include "image/options.h"
#include "image/policy.h"

struct ddp__bytes;

/* The box of the image is resized to w x h, of which the square of the sample's
 * size at (x, y) is the sample.  It is flipped left to right or top to bottom
 * if requested, then shifted by (dx, dy) pixels, with zeros at the edges,
 * changed by the policy, its colours are changed, and boxes are erased. */
struct ddp__crop {
    struct ddp__box box;
    int64_t w, h, x, y; /* 64 bits: resizing makes a long image longer */
    enum ddp_interpolation filter;
    bool flip, vertical_flip;
    struct ddp_policy policy;
    uint64_t key; /* of its draws */
    struct ddp__colour colour;
    int dx, dy;
    struct ddp__erasure erased; /* in the sample; no boxes: no erasing */
    uint8_t fill[3];            /* the mean colour */
};

/* The crop of an image of w x h, as the options and the key decide. */
struct ddp__crop ddp__augment(const struct ddp_image_options *o, uint64_t key,
                              int w, int h);

/* All of an image of w x h, its short side resized to `side`. */
struct ddp__crop ddp__crop_whole(int w, int h, int side);

/* The last steps, on x (size, size, 3): shift, colours and erase.  room is
 * memory for the blur.  DDP_ENOMEM. */
int ddp__augment_finish(const struct ddp__crop *c, int size,
                        struct ddp__bytes *room, uint8_t *x);

#endif
