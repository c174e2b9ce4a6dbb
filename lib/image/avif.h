/* avif.h - AVIF files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AVIF_H
#define DDP_AVIF_H

#include "image/picture.h"

extern const struct ddp__format ddp__avif;

#endif
