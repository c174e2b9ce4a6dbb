/* plan.h - how a step is divided and what memory it needs, in lines
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PLAN_H
#define PLAN_H

#include "ddp.h"

#include "options.h"

/* Of a trainer with these settings: batch, what is computed at a time and what
 * limits it, memory. */
void plan_print(const struct opts *o, const struct settings *s, ddp_t *ddp,
                const ddp_trainer_t *t);

#endif
