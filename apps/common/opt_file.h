/* opt_file.h - the values of options in a text file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_FILE_H
#define OPT_FILE_H

#include <stdio.h>

#include "common/opt.h"

/* All values as "name = value" lines, in the order of the table. */
void opts_save(const struct opts *o, FILE *f);

/* Take the values of options of_network that were not given from such a file.
 * Returns OPTS_GO, also when there is no such file, or the exit code. */
int opts_load(struct opts *o, const char *path);

/* Take all values that were not given from such a file: a recipe, or the record
 * of a run.  Lines that begin with # are comments; what belongs to one run,
 * such as its folder, is left out. Returns OPTS_GO, or the exit code after a
 * message with the line. */
int opts_configure(struct opts *o, const char *path);

#endif
