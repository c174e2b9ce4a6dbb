/* sinks.h - telling those who record a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SINKS_H
#define DDP_SINKS_H

#include "train/trainer.h"

/* Copy the list of the configuration. */
int ddp__sinks_copy(struct ddp_trainer *t);

void ddp__sinks_run(const struct ddp_trainer *t);
void ddp__sinks_step(const struct ddp_trainer *t, const struct ddp_progress *p);
void ddp__sinks_eval(const struct ddp_trainer *t,
                     const struct ddp_evaluation *e);
void ddp__sinks_checkpoint(const struct ddp_trainer *t, int64_t step);
void ddp__sinks_end(const struct ddp_trainer *t, int rc);

#endif
