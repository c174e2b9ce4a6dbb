/* check.h - the command "imagenet data check"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CHECK_H
#define CHECK_H

#include "options.h"

/* Returns the exit code of the program. */
int check_run(struct opts *o, struct settings *s);

#endif
