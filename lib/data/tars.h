/* tars.h - images in tar files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TARS_H
#define DDP_TARS_H

#include <stdbool.h>

#include "data/tar_index.h"
#include "ddp.h"

/* Samples that are mixed with each other: those of one window after the other,
 * in the order of an epoch's shards. */
enum { DDP__TAR_WINDOW = 16384 };

/* Where samples are.  All zeros: nowhere. */
struct ddp__tars_source {
    struct ddp__storage *in; /* owned */
    struct ddp__tar_index x;
    struct ddp__names classes;
    bool unchecked; /* the index has no checksums */
};
void ddp__tars_source_free(struct ddp__tars_source *s);

/* Read the names of the classes from the folder of tar files. */
int ddp__tars_load_classes(struct ddp__tars_source *s, const char *dir);

/* A data set of them.  Takes what s has, also after a failure; what, more: for
 * its description. */
ddp_dataset_t *ddp__tars_new(struct ddp__tars_source *s, const char *what,
                             const char *more,
                             const struct ddp_image_options *o);

#endif
