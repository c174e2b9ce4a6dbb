/* convert.h - the command "imagenet convert"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CONVERT_H
#define CONVERT_H

#include "options.h"

/* Returns the exit code of the program. */
int convert_run(struct opts *o, struct settings *s);

#endif
