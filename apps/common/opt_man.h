/* opt_man.h - a table of options as a manual page
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_MAN_H
#define OPT_MAN_H

#include <stdio.h>

#include "common/opt_program.h"

/* The page of a command, and that of a program with several, in man(7). */
void opt_man(const struct opt_program *p, const struct opt_command *c, FILE *f);
void opt_man_program(const struct opt_program *p, FILE *f);

#endif
