/* bias.h - gradients of biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_BIAS_H
#define DDP_CPU_BIAS_H

#include "shape.h"

/* db[s->o] (+)= the sum of dy over the pixels of all samples. */
void ddp__bias_gradient(const struct ddp__conv_shape *s, const void *dy,
                        bool accumulate, float *db);

#endif
