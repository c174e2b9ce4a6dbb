/* plan_names.h - which kernels a plan would have, for people
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PLAN_NAMES_H
#define DDP_PLAN_NAMES_H

#include "ops.h"

/* The names of the kernels that a plan of c would have: one, or one a phase.
 * Nothing is generated.  Stops at the first that each() does not return 0 for,
 * and returns that. */
int ddp__cpu_conv_names(const struct ddp__call *c,
                        int (*each)(const char *name, void *arg), void *arg);

#endif
