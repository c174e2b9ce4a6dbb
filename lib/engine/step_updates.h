/* step_updates.h - the decision on a step, its updates and averages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STEP_UPDATES_H
#define DDP_STEP_UPDATES_H

#include <stdbool.h>

struct ddp__engine;
struct ddp__step;

/* Whether any lane wrote to bucket b; to any.  The backward pass may not reach
 * all layers (a first layer that needs no gradient freezes them). */
bool ddp__step_reached(const struct ddp__engine *e, int b);
bool ddp__step_reached_any(const struct ddp__engine *e);

/* Submit the decision, the updates of all buckets, and the averages.  No bucket
 * is updated before the decision.  If ranks decide by their slices, each is
 * when those of the others have come, and the norm is made of all. */
int ddp__step_updates(struct ddp__engine *e, const struct ddp__step *s,
                      bool slices);

/* Early updates (early.h): that of a bucket as soon as it has its sum; once all
 * have been submitted, the decision and the averages. */
int ddp__step_early(struct ddp__engine *e, const struct ddp__step *s, int b);
int ddp__step_early_end(struct ddp__engine *e, const struct ddp__step *s);

#endif
