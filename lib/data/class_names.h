/* class_names.h - classes that a table has by their names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CLASS_NAMES_H
#define DDP_CLASS_NAMES_H

#include <stdint.h>

#include "ddp.h"

/* Give the data set the classes that are among n names, one for each sample or
 * more, whole numbers by value and then other names by their bytes; label: the
 * number of each. */
int ddp__class_names_number(ddp_dataset_t *d, int64_t n, char *const *name,
                            int32_t *label);

#endif
