/* image_folder.h - data sets of one folder per class
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IMAGE_FOLDER_H
#define DDP_IMAGE_FOLDER_H

#include "ddp.h"

/* ddp_dataset_folder() with the classes of another data set's subfolders, so
 * that a split with fewer classes has the same numbers; NULL: with its own. */
ddp_dataset_t *ddp__dataset_folder_like(const char *dir, const char *like,
                                        const struct ddp_image_options *o);

#endif
