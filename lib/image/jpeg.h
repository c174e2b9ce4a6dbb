/* jpeg.h - JPEG files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_JPEG_H
#define DDP_JPEG_H

#include "image/picture.h"

extern const struct ddp__format ddp__jpeg;

#endif
