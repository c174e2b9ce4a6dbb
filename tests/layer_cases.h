/* layer_cases.h - chains that oracle_layers.py has too, under the same names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef LAYER_CASES_H
#define LAYER_CASES_H

#include "ddp.h"

/* Name and chain of case i; false past the last.  The caller owns *chain. */
bool layer_case(int i, char name[64], ddp_chain_t **chain);

extern const char *const act_names[DDP_ACT_COUNT];

#endif
