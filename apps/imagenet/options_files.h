/* options_files.h - the options of commands that only read and write files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_FILES_H
#define OPTIONS_FILES_H

#include "common/opt.h"

extern const struct opt_command convert_command, report_command;
extern const struct opt_command check_command, pack_command, unpack_command;
extern const struct opt_command synth_command;

#endif
