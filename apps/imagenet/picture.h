/* picture.h - pictures of classes that a network can learn, made from numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PICTURE_H
#define PICTURE_H

#include <stddef.h>
#include <stdint.h>

/* One picture: RGB, rows without gaps. */
struct picture {
    int w, h;
    int left, top, right, bottom; /* of what it shows, in pixels */
    uint8_t *rgb;                 /* owned */
};

/* "striped ring" */
void picture_class_name(int label, char *buf, size_t size);

/* Picture `index` of a class, its short side about `size` pixels; the same
 * numbers give the same picture.  -1 without memory. */
int picture_draw(struct picture *img, int label, int64_t index, int size,
                 uint64_t seed);

void picture_free(struct picture *img);

#endif
