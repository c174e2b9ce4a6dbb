/* inspect.h - the command "imagenet inspect"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef INSPECT_H
#define INSPECT_H

#include "options.h"

/* Returns the exit code of the program. */
int inspect_run(struct opts *o, struct settings *s);

#endif
