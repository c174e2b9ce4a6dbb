/* webp.h - WebP files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WEBP_H
#define DDP_WEBP_H

#include "image/picture.h"

extern const struct ddp__format ddp__webp;

#endif
