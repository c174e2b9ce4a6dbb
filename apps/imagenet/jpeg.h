/* jpeg.h - write a picture as a JPEG file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef JPEG_H
#define JPEG_H

#include <stdbool.h>
#include <stdint.h>

struct jpeg_how {
    int quality; /* 1..100 */
    bool grey, progressive;
};

/* rgb: h rows of w pixels of 3 bytes.  0, or the exit code after a message. */
int jpeg_write(const char *path, const uint8_t *rgb, int w, int h,
               const struct jpeg_how *how);

#endif
