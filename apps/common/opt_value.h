/* opt_value.h - one value of an option: read from text, and printed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_VALUE_H
#define OPT_VALUE_H

#include <stdio.h>

#include "common/opt.h"

/* Set one value from text (NULL for a flag).  OPTS_GO, or the exit code after
 * a message. */
int opt_set(const struct opts *o, const struct opt *row, const char *text);

/* Report a value that is none of the words that next(arg, i) returns. */
void opt_complain_word(const struct opts *o, const char *name, const char *text,
                       const char *(*next)(const void *arg, int i),
                       const void *arg);

/* A value as one would type it. */
void opt_print_value(const struct opt *row, const void *values, FILE *f);

/* The i-th word of a row of OPT_CHOICE, or NULL. */
const char *opt_choice(const struct opt *r, int i);

#endif
