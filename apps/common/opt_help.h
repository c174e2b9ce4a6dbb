/* opt_help.h - the text of --help
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_HELP_H
#define OPT_HELP_H

#include <stdio.h>

#include "common/opt.h"

void opt_help(const struct opt_command *cmd, FILE *f);

#endif
