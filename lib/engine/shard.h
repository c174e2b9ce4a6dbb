/* shard.h - the optimizer's state, sharded over ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each bucket has a keeper: the rank that has its optimizer state, computes its
 * update, and sends the new weights to the other ranks.
 */
#ifndef DDP_SHARD_H
#define DDP_SHARD_H

#include <stdbool.h>
#include <stdint.h>

struct ddp__engine;
struct ddp__step;

/* Choose the keepers if spec.shard is set and there are several ranks. */
int ddp__shard_new(struct ddp__engine *e);

/* Choose ranks that check the sums which all ranks have whole, if these are
 * even; DDP_ENOMEM. */
int ddp__shard_checks(struct ddp__engine *e);

bool ddp__shard_used(const struct ddp__engine *e);

/* Whether the keeper alone gets the sum of a bucket's gradients in this step:
 * the decision and the norm are made from what keepers find.  The same on all
 * ranks. */
bool ddp__shard_sums(const struct ddp__engine *e, const struct ddp__step *s);

/* Whether this rank keeps the state of a bucket; without sharding all do. */
bool ddp__shard_keeps(const struct ddp__engine *e, int bucket);

/* Submit the broadcast of a bucket's weights from its keeper, after their
 * update. */
int ddp__shard_submit(struct ddp__engine *e, const struct ddp__step *s,
                      int bucket);

/* After a failed submission, which got as far as exchange `place` of the step:
 * take part in the broadcasts that are left, for the sake of the others. */
void ddp__shard_fail(struct ddp__engine *e, const struct ddp__step *s,
                     int place);

#endif
