/* shard.h - the optimizer's state, divided among ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of each bucket one rank, its keeper, has the optimizer's state and makes the
 * update; then it gives the others the weights.
 */
#ifndef DDP_SHARD_H
#define DDP_SHARD_H

#include <stdbool.h>
#include <stdint.h>

struct ddp__engine;
struct ddp__step;

/* Choose the keepers if the engine divides the state (spec.shard) and there are
 * several ranks. */
int ddp__shard_new(struct ddp__engine *e);

bool ddp__shard_used(const struct ddp__engine *e);

/* Whether this rank keeps the state of a bucket; without sharding all do. */
bool ddp__shard_keeps(const struct ddp__engine *e, int bucket);

/* Submit that the weights of a bucket go from its keeper to all ranks, once
 * they are updated. */
int ddp__shard_submit(struct ddp__engine *e, const struct ddp__step *s,
                      int bucket);

/* The submission of a step has failed here after so many exchanges, of the sums
 * and of buckets' weights: take part in those of weights that are left. */
void ddp__shard_fail(struct ddp__engine *e, const struct ddp__step *s,
                     int place);

#endif
