/* bn_bwd_channels.h - what batch normalisation backward computes of channels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BN_BWD_CHANNELS_H
#define DDP_BN_BWD_CHANNELS_H

#include "bn_bwd_pass.h"

/* mean, a and shift, as the forward pass had them. */
void ddp__bn_bwd_load(const struct ddp__bn_pass *s);

/* G, from the sums of the first pass; all: values that the statistics are of.
 */
void ddp__bn_bwd_gradients(const struct ddp__bn_pass *s, const double *sum,
                           double all);

/* The factors of the second pass, k1 and k2, from sums over all values, `apart`
 * from each other. */
void ddp__bn_bwd_factors(const struct ddp__bn_pass *s, const double *sum,
                         size_t apart, double all);

#endif
