/* effects.h - options that have no effect with the others
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef EFFECTS_H
#define EFFECTS_H

#include "options.h"

/* OPTS_GO, or the exit code after a message that names one. */
int effects_check(const struct opts *o, const struct settings *s);

#endif
