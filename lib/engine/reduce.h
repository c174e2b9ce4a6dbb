/* reduce.h - the reduction of gradients: owners of buckets, the tree over lanes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REDUCE_H
#define DDP_REDUCE_H

#include "engine/lanes.h"
#include "engine/step.h"
#include "engine/total.h"

/* Spread the buckets over the workers, by their numbers and sizes. */
void ddp__reduce_owners(struct ddp__engine *e);

/* The lane on whose worker a merge of sums at different ones runs; -1: on that
 * of the bucket's owner. */
int ddp__reduce_place(const struct ddp__engine *e, int bucket,
                      const struct ddp__merge *m);

/* Add what lanes have in a tree that depends only on their number (lanes.h), as
 * far as all of a block are this rank's. */
int ddp__reduce_submit(struct ddp__engine *e, const struct ddp__step *s,
                       struct ddp__total total);

/* Prepare what rounds a bucket's sums to the type that ranks send, if it is not
 * f32.  All sums of the tree are, so that their bits do not depend on which of
 * them ranks send. */
void ddp__reduce_round(struct ddp__engine *e, int bucket);

#endif
