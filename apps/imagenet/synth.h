/* synth.h - the command "imagenet data synth"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SYNTH_H
#define SYNTH_H

#include "options.h"

/* Returns the exit code of the program. */
int synth_run(struct opts *o, struct settings *s);

#endif
