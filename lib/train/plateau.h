/* plateau.h - a learning rate that falls when evaluations no longer improve
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PLATEAU_H
#define DDP_PLATEAU_H

#include "checkpoint/state.h"

/* Take the next evaluation's measure of a run with this rate, the greater the
 * better (or the smaller). */
void ddp__plateau_note(struct ddp__plateau *p, const struct ddp_schedule *s,
                       double lr, double value, bool greater);

/* What the rate is multiplied by. */
double ddp__plateau_factor(const struct ddp__plateau *p);

#endif
