/* steps.h - run the steps of a trainer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STEPS_H
#define DDP_STEPS_H

#include "engine/step.h"
#include "train/trainer.h"

/* Submit the next step, either with its update or keeping the gradients.  1: a
 * stream has no samples for it, and the run is over. */
int ddp__trainer_submit(struct ddp_trainer *t, bool update);

/* The run ends where the last epoch of a stream does, if that is after so many
 * steps. */
void ddp__trainer_find_end(struct ddp_trainer *t, int64_t steps);

/* Make a step of an update with these sums of gradients, as in
 * ddp__engine_apply(). */
int ddp__trainer_apply(struct ddp_trainer *t, const float *g, double divisor);

/* DDP_EINVAL if the configuration has none. */
int ddp__trainer_need_optimizer(const struct ddp_trainer *t);
/* Wait for the oldest step that was not reported, or for all steps. */
int ddp__trainer_collect(struct ddp_trainer *t, struct ddp__result *r);
int ddp__trainer_drain(struct ddp_trainer *t, struct ddp__result *r);
/* Whether evaluations have not improved for too long: the run ends. */
bool ddp__trainer_is_stale(const struct ddp_trainer *t);

/* The learning rate of a step. */
double ddp__trainer_lr(const struct ddp_trainer *t, int64_t step);

/* What a step is made of. */
struct ddp__step ddp__step_of(const struct ddp_trainer *t, int64_t step,
                              bool update);
/* Submit the next step, for which a program has asked. */
int ddp__trainer_submit_next(struct ddp_trainer *t, bool update);
/* Count what steps so far have skipped.  DDP_EDIVERGED: too many in a row. */
int ddp__trainer_note_skips(struct ddp_trainer *t, const struct ddp__result *r);
/* After a failure: the steps before the one that failed are done, and it is the
 * next one.  Returns rc, with its message. */
int ddp__trainer_settle(struct ddp_trainer *t, int rc);

#endif
