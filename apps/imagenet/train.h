/* train.h - the command "imagenet train"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TRAIN_H
#define TRAIN_H

#include "options.h"

/* Returns the exit code of the program. */
int train_run(struct opts *o, struct settings *s);

#endif
