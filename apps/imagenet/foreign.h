/* foreign.h - names that timm's and torchvision's scripts have for options
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "common/opt.h"

/* Of train_command; ended by a row without a name. */
extern const struct opt_foreign train_foreign[];

/* Our name of a network that may have another one there. */
const char *foreign_model(const char *name);

#endif
