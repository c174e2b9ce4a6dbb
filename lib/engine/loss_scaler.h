/* loss_scaler.h - whether a step is applied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOSS_SCALER_H
#define DDP_LOSS_SCALER_H

struct ddp__call;
struct ddp__engine;

/* Whether a step is applied.  decide is a HOST call on (lane 0's
 * stats, norm, scaler); its task's seed is the step's number. */
void ddp__loss_scaler_new(struct ddp__engine *e);
void ddp__loss_scaler_free(struct ddp__engine *e);

/* For early updates: the HOST calls that come before them, on (lane 0's stats,
 * scaler), and after them, in place of decide. */
void ddp__loss_scaler_early(struct ddp__engine *e, struct ddp__call *terms,
                            struct ddp__call *decide);

/* Where ranks have looked at their slices: the HOST calls that decide, on (lane
 * 0's stats, scaler), and that note the norm, on (norm, token). */
void ddp__loss_scaler_slices(struct ddp__engine *e, struct ddp__call *agree,
                             struct ddp__call *note);

/* The state that a run needs to resume: number of updates (for Adam), scale,
 * good steps, skipped steps, consecutive skipped steps.  Between steps. */
enum { DDP__SCALER_STATE = 5 };
int ddp__loss_scaler_get(struct ddp__engine *e,
                         double state[DDP__SCALER_STATE]);
int ddp__loss_scaler_set(struct ddp__engine *e,
                         const double state[DDP__SCALER_STATE]);

#endif
