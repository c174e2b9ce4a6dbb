/* subset.h - some of the samples of a data set
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SUBSET_H
#define DDP_SUBSET_H

#include "data/dataset.h"

struct ddp__subset {
    struct ddp_dataset d;
    struct ddp__dataset_ops ops; /* without those that `of` lacks */
    ddp_dataset_t *of;           /* owned */
    int64_t *index;              /* of each sample in it; owned */
};

/* A subset without samples, with room for `room` of them and all that `of` has
 * but the names of classes.  Takes over `of`, which is freed after a failure,
 * as it is for rc < 0. */
struct ddp__subset *ddp__subset_new(ddp_dataset_t *of, int64_t room, int rc);

/* Take shape, type and the like of another data set, and its classes as they
 * are. */
void ddp__subset_copy_fields(ddp_dataset_t *d, const ddp_dataset_t *of);
int ddp__subset_copy_classes(ddp_dataset_t *d, const ddp_dataset_t *of);

/* s as a data set; or NULL, and s is freed, if rc < 0. */
ddp_dataset_t *ddp__subset_finish(struct ddp__subset *s, int rc);

#endif
