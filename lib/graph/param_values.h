/* param_values.h - the values of parameters
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PARAM_VALUES_H
#define DDP_PARAM_VALUES_H

#include "graph/params.h"

/* Allocate memory for values, if there is none. */
int ddp__params_reserve(struct ddp__params *p);
/* Initialise those that the program has not set: the values of
 * ddp_chain_init(). */
int ddp__params_init_rest(struct ddp__params *p, uint64_t seed);
/* Those that have no value yet get that of seed 0. */
int ddp__params_need_values(struct ddp__params *p);
/* Copy between our order of elements and PyTorch's. */
void ddp__param_export(const struct ddp_param *p, const float *in, float *out);
void ddp__param_import(const struct ddp_param *p, const float *in, float *out);
/* To PyTorch's order in place, with room for ddp__param_row() values. */
size_t ddp__param_row(const struct ddp_param *p);
void ddp__param_export_here(const struct ddp_param *p, float *data, float *row);

#endif
