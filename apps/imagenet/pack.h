/* pack.h - the command "imagenet data pack"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PACK_H
#define PACK_H

#include "options.h"

/* Returns the exit code of the program. */
int pack_run(struct opts *o, struct settings *s);

#endif
