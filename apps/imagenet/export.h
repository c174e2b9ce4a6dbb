/* export.h - the command "imagenet export"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef EXPORT_H
#define EXPORT_H

#include "options.h"

/* Returns the exit code of the program. */
int export_run(struct opts *o, struct settings *s);

#endif
