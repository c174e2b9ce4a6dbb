/* picture.h - pictures of classes that a network can learn, made from numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SYNTH_H
#define SYNTH_H

#include <stddef.h>
#include <stdint.h>

/* One picture: RGB, rows without gaps. */
struct synth_image {
    int w, h;
    int left, top, right, bottom; /* of what it shows, in pixels */
    uint8_t *rgb;                 /* owned */
};

/* "striped ring" */
void synth_class_name(int label, char *buf, size_t size);

/* Picture `index` of a class, its short side about `size` pixels; the same
 * numbers give the same picture.  -1 without memory. */
int synth_draw(struct synth_image *img, int label, int64_t index, int size,
               uint64_t seed);

void synth_free(struct synth_image *img);

#endif
