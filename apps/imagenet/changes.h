/* changes.h - --resume-with: options that a resumed run may change
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CHANGES_H
#define CHANGES_H

#include <stddef.h>

#include "options.h"

/* Write the library's names of the settings that --resume-with allows to
 * change.  OPTS_GO, or the exit code after a message. */
int changes_allowed(const struct opts *o, const struct settings *s, char *text,
                    size_t size);

/* Write what --resume-with has to name for these settings to change; "" if it
 * cannot. */
void changes_wanted(const struct opts *o, const char *settings, char *text,
                    size_t size);

#endif
