/* opt_complete.h - a program's options as a completion for a shell
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_COMPLETE_H
#define OPT_COMPLETE_H

#include <stdio.h>

#include "common/opt_program.h"

/* Print the completion for "bash", "zsh" or "fish"; -1: another shell. */
int opt_complete(const struct opt_program *p, const char *shell, FILE *f);

#endif
