/* weights.h - --weights FILE, and the settings saved with it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ddp.h"

#include "names.h"
#include "options.h"

/* Refuse a --weights that cannot be read. */
int weights_check(const struct opts *o, const struct settings *s);

/* The path of a file of the run that wrote the weights: in their folder, or two
 * folders above for weights of a checkpoint.  To free(); NULL: no memory. */
char *weights_file_near(const char *weights, const char *name);

/* Take network options from the metadata of --weights, or from config.txt next
 * to it, and print them to log; class names from the same place, or
 * classes.txt, unless classes is NULL.  OPTS_GO, also if there are none, or the
 * exit code: an option that was given must be that of the network. */
int weights_read_settings(struct opts *o, struct settings *s, FILE *log,
                          struct names *classes);

/* Check --weights and the model, with the options saved with the weights:
 * OPTS_GO or the exit code. */
int weights_setup(struct opts *o, struct settings *s, FILE *log,
                  struct names *classes);

/* Have the files of the chain's weights carry the network options, and the
 * names of the classes; 0 or the library's code. */
int weights_describe(const struct opts *o, ddp_chain_t *c,
                     const ddp_dataset_t *d);

/* The names of the classes, one per line in order; a number where there is
 * none. */
void weights_print_classes(const ddp_dataset_t *d, FILE *f);

/* Load the weights, and print what does not fit: OPTS_GO, or the exit code.
 * new_head: a last layer with another number of classes remains random. */
int weights_load(const struct settings *s, ddp_chain_t *c, bool new_head);

#endif
