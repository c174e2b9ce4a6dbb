/* png.h - PNG files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PNG_H
#define DDP_PNG_H

#include "image/picture.h"

extern const struct ddp__format ddp__png;

#endif
