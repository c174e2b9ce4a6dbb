/* names.h - lines of a text file: paths of images, names of classes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef NAMES_H
#define NAMES_H

#include <stdint.h>
#include <stdio.h>

#include "ddp.h"

struct names {
    char **name; /* owned, each one too */
    int64_t count;
};

/* Append the lines of a file ("-": stdin) that are not empty.  OPTS_GO or the
 * exit code after a message. */
int names_read(struct names *n, const char *path);
int names_read_from(struct names *n, FILE *f);
int names_add(struct names *n, const char *name);
void names_free(struct names *n);

/* The names of the classes, one per line in order; a number where there is
 * none. */
void names_print(const ddp_dataset_t *d, FILE *f);

#endif
