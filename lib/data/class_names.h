/* class_names.h - classes that a table has by their names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CLASS_NAMES_H
#define DDP_CLASS_NAMES_H

#include <stdint.h>

#include "ddp.h"

/* Give the data set the classes that its samples have as name[], whole numbers
 * by value and then other names by their bytes, and number each sample's. */
int ddp__class_names_number(ddp_dataset_t *d, char *const *name,
                            int32_t *label);

#endif
