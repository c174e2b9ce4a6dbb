/* doctor_ranks.h - where the ranks are, and the network between them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DOCTOR_RANKS_H
#define DOCTOR_RANKS_H

#include "ddp.h"

#include "doctor_report.h"

/* Every rank calls it; nothing with one. */
void doctor_ranks(struct report *r, ddp_t *ddp);

/* How so many lanes are divided among the ranks. */
void doctor_lanes(int lanes, int ranks);

#endif
