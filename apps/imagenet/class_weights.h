/* class_weights.h - how much each class counts: --class-weights, --pos-weight
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CLASS_WEIGHTS_H
#define CLASS_WEIGHTS_H

#include "ddp.h"

/* The weights that `given` names, a file or "balanced", for the classes of the
 * data: OPTS_GO and *weight, to be freed, or the exit code after a message. */
int class_weights_make(const char *given, const ddp_dataset_t *d,
                       float **weight);
/* The same of --pos-weight. */
int pos_weight_make(const char *given, const ddp_dataset_t *d, float **weight);

#endif
