/* reduce.h - the reduction of gradients: owners of buckets, the tree over lanes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REDUCE_H
#define DDP_REDUCE_H

#include "engine/step.h"

/* Spread the buckets over the workers, by their numbers and sizes. */
void ddp__reduce_owners(struct ddp__engine *e);

/* Add the accumulator of lane l + stride to that of lane l, for strides 1, 2,
 * 4, ...: the tree depends only on the number of lanes.  bucket -1: the
 * statistics. */
int ddp__reduce_submit(struct ddp__engine *e, const struct ddp__step *s,
                       int bucket);

#endif
