/* param_init.h - initial values of parameters
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PARAM_INIT_H
#define DDP_PARAM_INIT_H

#include "graph/params.h"

/* Where parameter i of a block is. */
float *ddp__param_memory(const struct ddp__params *p,
                         const struct ddp__param_block *b, int i);

/* Give those that the program has not set their values by the seed. */
void ddp__params_init_unset(struct ddp__params *p, uint64_t seed);

#endif
