/* train_make.h - the data, network and trainer of "imagenet train"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef TRAIN_MAKE_H
#define TRAIN_MAKE_H

#include "train_run.h"

/* These return an exit code after a message, or OPTS_GO. */

int train_open_data(struct run *r);
int train_make_trainer(struct run *r);

/* --find-lr */
int train_find_rate(struct run *r);

/* --dry-run: what train_make_trainer() would use, without memory for it. */
int train_print_options(struct run *r);

#endif
