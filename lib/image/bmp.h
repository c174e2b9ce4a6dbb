/* bmp.h - BMP files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BMP_H
#define DDP_BMP_H

#include "image/picture.h"

extern const struct ddp__format ddp__bmp;

#endif
