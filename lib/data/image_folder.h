/* image_folder.h - data sets of one folder per class
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_IMAGE_FOLDER_H
#define DDP_IMAGE_FOLDER_H

#include "ddp.h"

/* ddp_dataset_folder() with the classes named by another's subfolders, so
 * that a part with fewer of them numbers them alike; NULL: by its own. */
ddp_dataset_t *ddp__dataset_folder_like(const char *dir, const char *like,
                                        const struct ddp_image_options *o);

#endif
