/* class_weights.h - --class-weights: how much each class counts in the loss
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CLASS_WEIGHTS_H
#define CLASS_WEIGHTS_H

#include "ddp.h"

/* The weights that `given` names, a file or "balanced", for the classes of the
 * data: OPTS_GO and *weight, to be freed, or the exit code after a message. */
int class_weights_make(const char *given, const ddp_dataset_t *d,
                       float **weight);

#endif
