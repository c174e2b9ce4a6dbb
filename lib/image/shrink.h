/* shrink.h - an image file as a smaller one, a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SHRINK_H
#define DDP_SHRINK_H

#include <stdint.h>

#include "ddp.h"

struct ddp__bytes;

struct ddp__shrink {
    int side;    /* pixels of the shorter one */
    int quality; /* of libjpeg, 1 to 100 */
    enum ddp_interpolation filter;
    int64_t max_pixels;
};

/* Replace an image file by that of the image resized; one whose shorter side
 * has no more pixels is left: DDP__AS_IT_WAS.  The same file gives the same
 * bytes.  EXIF's orientation is lost.  DDP_EDATA; DDP_ENOMEM. */
int ddp__image_shrink(struct ddp__bytes *file, const struct ddp__shrink *how);
enum { DDP__AS_IT_WAS = 1 };

#endif
