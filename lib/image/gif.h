/* gif.h - GIF files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GIF_H
#define DDP_GIF_H

#include "image/picture.h"

extern const struct ddp__format ddp__gif;

#endif
