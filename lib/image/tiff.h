/* tiff.h - TIFF files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TIFF_H
#define DDP_TIFF_H

#include "image/picture.h"

extern const struct ddp__format ddp__tiff;

#endif
