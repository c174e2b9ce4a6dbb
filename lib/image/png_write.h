/* png_write.h - a picture as the bytes of a PNG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PNG_WRITE_H
#define DDP_PNG_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

/* The most bytes of a row. */
enum { DDP__PNG_ROW = 65534 };

/* pixels (h, w, c) with c 1, gray, or 3, in a file of *len bytes that is not
 * compressed, to free(); NULL: out of memory. */
unsigned char *ddp__png_write(struct ddp_shape s, const uint8_t *pixels,
                              size_t *len);

#endif
