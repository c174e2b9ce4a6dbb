/* class_subset.h - the option --classes: some classes of the data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CLASS_SUBSET_H
#define CLASS_SUBSET_H

#include "ddp.h"

#include "options.h"

/* Leave out the samples of *d whose classes --classes does not name; OPTS_GO,
 * or the exit code after a message. */
int class_subset_choose(const struct opts *o, const struct settings *s,
                        ddp_dataset_t **d);

/* With --classes, leave out those that are none of these n names. */
int class_subset_match(const struct settings *s, int64_t n,
                       const char *const *name, ddp_dataset_t **d);

#endif
