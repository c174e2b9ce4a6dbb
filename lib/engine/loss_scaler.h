/* loss_scaler.h - whether a step is applied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOSS_SCALER_H
#define DDP_LOSS_SCALER_H

struct ddp__engine;

/* Whether a step is applied.  decide is a HOST call on (lane 0's
 * totals, norm, guard); its task's seed is the step's number. */
void ddp__guard_new(struct ddp__engine *e);
void ddp__guard_free(struct ddp__engine *e);

/* The state that a run needs to resume: number of updates (for Adam), scale,
 * good steps, skipped steps, consecutive skipped steps.  Between steps. */
enum { DDP__GUARD_STATE = 5 };
int ddp__guard_get(struct ddp__engine *e, double state[DDP__GUARD_STATE]);
int ddp__guard_set(struct ddp__engine *e, const double state[DDP__GUARD_STATE]);

#endif
