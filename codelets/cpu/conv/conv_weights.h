/* conv_weights.h - weights of convolutions as oneDNN's primitives read them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_CONV_WEIGHTS_H
#define DDP_CPU_CONV_WEIGHTS_H

#include "plan.h"

/* The weights of a forward pass or data gradient in the layout that d needs;
 * give *k back unless it is NULL. */
int ddp__conv_weights(const struct ddp__task *t, struct ddp__plan *p,
                      const struct ddp__dnn *d, struct ddp__pack **k, void **w);

#endif
