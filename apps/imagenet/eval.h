/* eval.h - the command "imagenet eval"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef EVAL_H
#define EVAL_H

#include "options.h"

/* Returns the exit code of the program. */
int eval_run(struct opts *o, struct settings *s);

#endif
