/* colour.h - random changes of a sample's colours, and its blur
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COLOUR_H
#define DDP_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp__bytes;
struct ddp_image_options;

enum {
    DDP__BRIGHTNESS,
    DDP__CONTRAST,
    DDP__SATURATION,
    DDP__HUE,
    DDP__JITTERS
};

/* What is done to a sample, in this order; all 0 is nothing. */
struct ddp__colour {
    bool jitter, gray;
    uint8_t order[DDP__JITTERS]; /* of the first */
    float factor[DDP__JITTERS];  /* hue: turns; the others: 1 changes nothing */
    float blur;                  /* standard deviation in pixels, or 0 */
};

/* DDP_EINVAL for what is not a probability or a strength. */
int ddp__colour_check(const struct ddp_image_options *o);

/* As the options and the key decide. */
struct ddp__colour ddp__colour_plan(const struct ddp_image_options *o,
                                    uint64_t key);

/* From a (factor 0) to b (1) and beyond, truncated: Pillow's Image.blend(). */
static inline uint8_t ddp__blend(int a, int b, float factor)
{
    float v = (float)a + factor * (float)(b - a);

    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/* Change n pixels of x by one of DDP__BRIGHTNESS, ...: torchvision's
 * adjust_brightness(), ... */
void ddp__colour_adjust(int kind, float factor, size_t n, uint8_t *x);

/* Apply it to x (size, size, 3).  room is memory for the blur.  DDP_ENOMEM. */
int ddp__colour_apply(const struct ddp__colour *c, int size,
                      struct ddp__bytes *room, uint8_t *x);

#endif
