/* files.h - data sets of images in files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FILES_H
#define DDP_FILES_H

#include <stdbool.h>

#include "ddp.h"

/* Create a data set of image files under dir (NULL: paths are used as they
 * are); NULL after a failure. */
ddp_dataset_t *ddp__files_new(const char *dir,
                              const struct ddp_image_options *o);

/* Add the file at path below dir.  The path is copied. */
int ddp__files_add(ddp_dataset_t *d, const char *path, int32_t label);

/* Add the images of the folder `name` below dir, at any depth, in the order
 * of their paths; the number of images, or a negative code. */
int64_t ddp__files_add_folder(ddp_dataset_t *d, const char *name,
                              int32_t label);

/* Whether a name has the suffix of an image file. */
bool ddp__files_is_image(const char *name);

/* The labels of the files, which may be changed. */
int32_t *ddp__files_labels(ddp_dataset_t *d);

/* Targets of len numbers for the files instead of labels; taken. */
void ddp__files_set_targets(ddp_dataset_t *d, float *target, int len);

/* The factors of the files' losses; taken. */
void ddp__files_set_weights(ddp_dataset_t *d, float *weight);

/* "; skipped files: 3 .gif, 2 hidden", or "": those in the folders that are no
 * images by their names, and with classes images next to the folders. */
enum { DDP__SKIPPED_TEXT = 256 };
int ddp__files_skipped(const ddp_dataset_t *d, bool classes,
                       char text[DDP__SKIPPED_TEXT]);

/* The number of files directly in its folder that have image suffixes. */
int64_t ddp__files_count(const ddp_dataset_t *d);

#endif
