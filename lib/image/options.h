/* options.h - how images are processed: defaults, ranges, names in files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IMAGE_OPTIONS_H
#define DDP_IMAGE_OPTIONS_H

#include "ddp.h"

/* The most options of ddp__image_list(). */
enum { DDP__IMAGE_OPTIONS = 40 };

/* Copy the options with their defaults filled in; DDP_EINVAL.  size is the
 * default of the size. */
int ddp__image_options(const struct ddp_image_options *in, int size,
                       struct ddp_image_options *out);

/* The options that decide how an image is processed; returns their number.  An
 * option that the kind of augmentation does not use is 0. */
int ddp__image_list(const struct ddp_image_options *image,
                    struct ddp_option o[DDP__IMAGE_OPTIONS]);

#endif
