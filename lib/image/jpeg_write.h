/* jpeg_write.h - a picture as the bytes of a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_JPEG_WRITE_H
#define DDP_JPEG_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "ddp.h"

struct ddp__bytes;

/* How exact a file is. */
struct ddp__jpeg_quality {
    int percent; /* 1 to 100 */
    bool colour; /* that of each pixel, not of squares of four */
};

/* The most pixels of a side. */
enum { DDP__JPEG_SIDE = 65500 };

/* pixels (h, w, c) with c 1, gray, or 3, in place of what `file` has.
 * DDP_ENOMEM; DDP_EDATA: libjpeg refuses the picture. */
int ddp__jpeg_write(struct ddp_shape s, const uint8_t *pixels,
                    struct ddp__jpeg_quality q, struct ddp__bytes *file);

#endif
