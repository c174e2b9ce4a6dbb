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

/* Of each filter, the tap that becomes tap `at` of the one turned round. */
size_t ddp__conv_turned_tap(const struct ddp__plan *p, int at);

#endif
