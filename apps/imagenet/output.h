/* output.h - text files in the folder of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

/* Make a folder "runs/resnet18-20260131-142501", with "-2", ... after it if
 * another run has that one: *path, to free().  OPTS_GO, or the exit code after
 * a message. */
int output_new(const char *model, char **path);

typedef void output_f(const void *arg, FILE *f);

/* Replace DIR/NAME by what write() prints, atomically and durably: another
 * process reads the old text or the new one, also after a crash.  OPTS_GO, or
 * the exit code after a message. */
int output_write(const char *dir, const char *name, output_f *write,
                 const void *arg);

#endif
