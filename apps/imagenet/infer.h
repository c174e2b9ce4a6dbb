/* infer.h - the command "imagenet infer"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef INFER_H
#define INFER_H

#include "options.h"

/* Returns the exit code of the program. */
int infer_run(struct opts *o, struct settings *s);

#endif
